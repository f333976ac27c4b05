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
WITH _pit_parts AS (
  SELECT known.asset, known.currency, known.exchange, known.network, known.t, known.available_at,
    {{start known.t to_interval}} AS start, {{leaf v known.pointer}} AS v,
    (known.v IS NULL AND known.o IS NULL) OR coalesce(json_type(known.o, known.pointer) = 'NULL', false) AS empty
  FROM (SELECT stored.*, {{pointer metric}} AS pointer FROM {{points_of metric from_interval}} AS stored) AS known
  WHERE (CAST(currency AS VARCHAR) IS NULL OR known.currency IS NULL OR known.currency = CAST(currency AS VARCHAR))
    AND (CAST(exchange AS VARCHAR) IS NULL OR known.exchange IS NULL OR known.exchange = CAST(exchange AS VARCHAR))
    AND (CAST(network AS VARCHAR) IS NULL OR known.network IS NULL OR known.network = CAST(network AS VARCHAR))
    AND (since IS NULL OR known.t >= {{first {{utc since}} to_interval}}) AND (until IS NULL OR known.t < {{first {{utc until}} to_interval}})
),
_pit_groups AS (
  SELECT p.asset, p.currency, p.exchange, p.network, p.start, max(p.available_at) AS available_at,
    count(*) FILTER (p.v IS NOT NULL OR p.empty) AS there, count(p.v) AS filled,
    list(p.t) FILTER (p.v IS NOT NULL) AS parts_t, list(p.v) FILTER (p.v IS NOT NULL) AS parts_v
  FROM _pit_parts AS p
  GROUP BY p.asset, p.currency, p.exchange, p.network, p.start
),
_pit_counted AS (
  SELECT g.* REPLACE (CASE WHEN list_reduce(g.parts_t, lambda one, later: CASE WHEN one < later THEN later END) IS NOT NULL THEN g.parts_v
      ELSE list_transform(list_sort(list_zip(g.parts_t, g.parts_v)), lambda part: part[2]) END AS parts_v), CASE
      WHEN NOT {{fits from_interval to_interval}}
      THEN CAST(error('cannot resample ' || CAST(from_interval AS VARCHAR) || ' to ' || CAST(to_interval AS VARCHAR)) AS BIGINT)
      ELSE ({{end g.start to_interval}} - epoch_us(g.start)) // {{length from_interval}} END AS wanted,
    CASE WHEN coalesce(CAST(skip_nulls AS BOOLEAN), false) THEN g.filled ELSE g.there END AS parts,
    CASE WHEN CAST(min_parts AS BIGINT) < 1 THEN CAST(error('min_parts is not positive') AS BIGINT) ELSE CAST(min_parts AS BIGINT) END AS least_parts
  FROM _pit_groups AS g
),
_pit_told AS (
  SELECT *, filled > 0 AND filled >= parts
    AND CASE WHEN least_parts IS NULL THEN there >= wanted ELSE filled >= least_parts END AS told
  FROM _pit_counted
)
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
