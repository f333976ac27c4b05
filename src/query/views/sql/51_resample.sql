-- resample: a metric on a coarser interval, computed from its finer points.
-- columns: metric, asset, interval, currency, exchange, network, t, available_at, parts, complete, v.
-- law: L1. A coarse point is known when the latest of its parts is known.
--   v is NULL if a part is missing or null, unless min_parts or skip_nulls allow that. It is never a sum over some of
--   the parts by accident.
--   A value that is not a number at the pointer is not a part. `complete` is true if every part exists, null ones
--   included, whatever `parts` counts.
--   Parts are combined in the order of t, so that sums repeat bit for bit. Most groups arrive in that order, and only
--   the others are sorted.
--   since and until bound t, half-open, and reach the scan of the parts. A condition on the coarse t does not reach
--   it.
CREATE OR REPLACE MACRO resample(metric, from_interval, to_interval, agg := 'mean',
  currency := NULL, exchange := NULL, network := NULL,
  component := NULL, skip_nulls := false, min_parts := NULL, since := NULL, until := NULL,
  follow_renames := false) AS TABLE
WITH {{part coarse_parts}}
SELECT split_part(CAST(metric AS VARCHAR), '#', 1) AS metric, c.asset,
  CAST(to_interval AS VARCHAR) AS "interval", c.currency, c.exchange, c.network, c.start AS t,
  c.available_at, c.parts, c.existing_parts = c.expected_parts AS complete,
  CASE WHEN NOT c.has_value THEN NULL ELSE CASE CAST(agg AS VARCHAR)
    WHEN 'sum' THEN list_reduce(c.parts_v, lambda total, part: total + part)
    WHEN 'mean' THEN list_reduce(c.parts_v, lambda total, part: total + part) / c.numeric_parts
    WHEN 'avg' THEN list_reduce(c.parts_v, lambda total, part: total + part) / c.numeric_parts
    WHEN 'min' THEN list_min(c.parts_v)
    WHEN 'max' THEN list_max(c.parts_v)
    WHEN 'median' THEN list_median(c.parts_v)
    WHEN 'first' THEN c.parts_v[1]
    WHEN 'last' THEN c.parts_v[-1]
    ELSE CAST(error('agg is sum, mean, median, min, max, first or last, not '
      || coalesce(CAST(agg AS VARCHAR), 'NULL')) AS DOUBLE) END END AS v
FROM _pit_coarse AS c;
COMMENT ON MACRO TABLE resample IS 'resample(metric, from_interval, to_interval, agg): coarser points of a metric; available_at is that of the latest part, v is NULL if a part is missing or null. agg: sum, mean, median, min, max, first, last. Options: currency, exchange, network, component (or metric#/pointer), skip_nulls, min_parts, since and until of t (faster than a condition), follow_renames as pit_join.';
