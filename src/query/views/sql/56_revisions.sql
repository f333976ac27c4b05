-- revisions: how often, how much and how late the points of a metric were revised, one row for each series. It
--   compares the last value with the first.
-- columns: metric, asset, interval, currency, exchange, network, points, revised, vintages, mean_change,
--   mean_absolute, max_absolute, mean_relative, max_relative, mean_delay, max_delay.
-- law: L1. Only what is known at `as_of` counts. Changes and delays are statistics of the revised points. Relative
--   changes leave out points whose first value is 0 or missing.
CREATE OR REPLACE MACRO revisions(metric) AS TABLE
WITH _rev_points AS (
  SELECT w.metric, w.asset, w."interval", w.currency, w.exchange, w.network, w.t, count(*) AS vintages,
    max(w.v) FILTER (w.ordinal = 1) AS first_v, arg_max({'v': w.v}, w.ordinal).v AS last_v,
    min(w.available_at) AS first_at, max(w.available_at) AS last_at
  FROM ({{view vintages}}) AS w WHERE w.metric = CAST(metric AS VARCHAR)
  GROUP BY w.metric, w.asset, w."interval", w.currency, w.exchange, w.network, w.t
),
_rev_changes AS (
  SELECT r.*, r.vintages > 1 AS is_revised, r.last_v - r.first_v AS change,
    epoch_us(r.last_at) - epoch_us(r.first_at) AS delay
  FROM _rev_points AS r
)
SELECT c.metric, c.asset, c."interval", c.currency, c.exchange, c.network, count(*) AS points,
  count(*) FILTER (c.is_revised) AS revised, CAST(sum(c.vintages) AS BIGINT) AS vintages,
  avg(c.change) FILTER (c.is_revised) AS mean_change, avg(abs(c.change)) FILTER (c.is_revised) AS mean_absolute,
  max(abs(c.change)) FILTER (c.is_revised) AS max_absolute,
  avg(abs(c.change / c.first_v)) FILTER (c.is_revised AND c.first_v <> 0) AS mean_relative,
  max(abs(c.change / c.first_v)) FILTER (c.is_revised AND c.first_v <> 0) AS max_relative,
  to_microseconds(CAST(avg(c.delay) FILTER (c.is_revised) AS BIGINT)) AS mean_delay,
  to_microseconds(max(c.delay) FILTER (c.is_revised)) AS max_delay
FROM _rev_changes AS c
GROUP BY c.metric, c.asset, c."interval", c.currency, c.exchange, c.network;
COMMENT ON MACRO TABLE revisions IS 'revisions(metric): for each series how many points there are, how many were revised, in how many vintages, by how much (last against first) and how late.';
