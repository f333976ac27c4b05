-- resample: a metric on a coarser interval, made of its finer points.
-- columns: metric, asset, interval, currency, exchange, network, t, available_at, parts, complete, v.
-- law: L1. A coarse point is known when the latest of its parts is. v is NULL if a part is missing or null: never the
--   sum of what happens to be there, unless min_parts or skip_nulls say so. What is no number at the pointer is no part.
--   complete says that every part is there, null ones too, whatever parts counts. The parts are taken in the order of t, so that sums repeat bit for bit; few groups
--   come in another than that of the files, and only those are sorted.
--   since and until bound t, half-open, and reach the scan of the parts, which a condition on the coarse t does not: of a
--   point no part lies before the first coarse start that is not before `since`, nor behind that for `until`.
CREATE OR REPLACE MACRO resample(metric, from_interval, to_interval, agg := 'mean', currency := NULL, exchange := NULL, network := NULL,
  component := NULL, skip_nulls := false, min_parts := NULL, since := NULL, until := NULL,
  follow_renames := false) AS TABLE
WITH {{part coarse_parts}}
SELECT split_part(CAST(metric AS VARCHAR), '#', 1) AS metric, c.asset, CAST(to_interval AS VARCHAR) AS "interval", c.currency, c.exchange, c.network, c.start AS t,
  c.available_at, c.parts, c.there = c.wanted AS complete,
  CASE WHEN NOT c.told THEN NULL ELSE CASE CAST(agg AS VARCHAR)
    WHEN 'sum' THEN list_reduce(c.parts_v, lambda total, part: total + part)
    WHEN 'mean' THEN list_reduce(c.parts_v, lambda total, part: total + part) / c.filled
    WHEN 'avg' THEN list_reduce(c.parts_v, lambda total, part: total + part) / c.filled
    WHEN 'min' THEN list_min(c.parts_v)
    WHEN 'max' THEN list_max(c.parts_v)
    WHEN 'median' THEN list_median(c.parts_v)
    WHEN 'first' THEN c.parts_v[1]
    WHEN 'last' THEN c.parts_v[-1]
    ELSE CAST(error('agg is sum, mean, median, min, max, first or last, not ' || coalesce(CAST(agg AS VARCHAR), 'NULL')) AS DOUBLE) END END AS v
FROM _pit_told AS c;
COMMENT ON MACRO TABLE resample IS 'resample(metric, from_interval, to_interval, agg): coarser points of a metric; available_at is that of the latest part, v is NULL if a part is missing or null. agg: sum, mean, median, min, max, first, last. Options: currency, exchange, network, component (or metric#/pointer), skip_nulls, min_parts, since and until of t (faster than a condition), follow_renames as pit_join.';
