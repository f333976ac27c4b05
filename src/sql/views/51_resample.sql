-- resample: a metric on a coarser interval, made of its finer points.
-- columns: metric, asset, interval, currency, exchange, network, t, available_at, parts, complete, v.
-- law: L1. A coarse point is known when the latest of its parts is. v is NULL if a part is missing or null: never the
--   sum of what happens to be there. The parts are taken in the order of t, so that sums repeat bit for bit.
CREATE OR REPLACE MACRO resample(metric, from_interval, to_interval, agg := 'mean', currency := NULL, exchange := NULL, network := NULL) AS TABLE
WITH _pit_parts AS (
  SELECT known.*, {{start known.t to_interval}} AS start
  FROM {{points_of metric from_interval}} AS known
  WHERE (CAST(currency AS VARCHAR) IS NULL OR known.currency IS NULL OR known.currency = CAST(currency AS VARCHAR))
    AND (CAST(exchange AS VARCHAR) IS NULL OR known.exchange IS NULL OR known.exchange = CAST(exchange AS VARCHAR))
    AND (CAST(network AS VARCHAR) IS NULL OR known.network IS NULL OR known.network = CAST(network AS VARCHAR))
),
_pit_groups AS (
  SELECT p.metric, p.asset, p.currency, p.exchange, p.network, p.start, max(p.available_at) AS available_at,
    count(*) AS parts, count(p.v) AS filled, list(p.v ORDER BY p.t) AS parts_v
  FROM _pit_parts AS p
  GROUP BY p.metric, p.asset, p.currency, p.exchange, p.network, p.start
),
_pit_counted AS (
  SELECT g.*, CASE
      WHEN NOT {{fits from_interval to_interval}}
      THEN CAST(error('cannot resample ' || CAST(from_interval AS VARCHAR) || ' to ' || CAST(to_interval AS VARCHAR)) AS BIGINT)
      ELSE ({{end g.start to_interval}} - epoch_us(g.start)) // {{length from_interval}} END AS wanted
  FROM _pit_groups AS g
)
SELECT c.metric, c.asset, CAST(to_interval AS VARCHAR) AS "interval", c.currency, c.exchange, c.network, c.start AS t,
  c.available_at, c.parts, c.parts = c.wanted AS complete,
  CASE WHEN c.filled < c.wanted THEN NULL ELSE CASE CAST(agg AS VARCHAR)
    WHEN 'sum' THEN list_reduce(c.parts_v, lambda total, part: total + part)
    WHEN 'mean' THEN list_reduce(c.parts_v, lambda total, part: total + part) / c.filled
    WHEN 'avg' THEN list_reduce(c.parts_v, lambda total, part: total + part) / c.filled
    WHEN 'min' THEN list_min(c.parts_v)
    WHEN 'max' THEN list_max(c.parts_v)
    WHEN 'median' THEN list_median(c.parts_v)
    WHEN 'first' THEN c.parts_v[1]
    WHEN 'last' THEN c.parts_v[-1]
    ELSE CAST(error('agg is sum, mean, median, min, max, first or last, not ' || coalesce(CAST(agg AS VARCHAR), 'NULL')) AS DOUBLE) END END AS v
FROM _pit_counted AS c;
COMMENT ON MACRO TABLE resample IS 'resample(metric, from_interval, to_interval, agg): coarser points of a metric; available_at is that of the latest part, v is NULL if a part is missing. agg: sum, mean, median, min, max, first, last.';
