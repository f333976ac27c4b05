-- stored_points: one row per point that the lake already stores of the series of this batch, around the batch's points and windows.
-- from: points files, series.
-- columns: rank, t (seconds), v, o, digits (of an integer that no double is), computed, stored_at (microseconds), of revisable series also available.
-- law: L2. What is stored stays; everything offered is compared with it.
CREATE TEMP TABLE stored_points AS
SELECT s.rank, epoch_us(e.t) // 1000000 AS t, e.v, e.o, CASE WHEN e.extra IS NOT NULL THEN json_extract_string(e.extra, '$.v') END AS digits, epoch_us({{computed}}) AS computed, epoch_us(e.observed_at) AS stored_at{{available}}
FROM {{source}} e
JOIN series s ON e.metric = s.metric AND e."interval" = s."interval" AND e.asset = s.asset AND e.currency IS NOT DISTINCT FROM s.currency
  AND e.exchange IS NOT DISTINCT FROM s.exchange AND e.network IS NOT DISTINCT FROM s.network
  AND e.params IS NOT DISTINCT FROM s.params
WHERE {{range}}
