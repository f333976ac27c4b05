-- held: what the lake already holds of the series of this batch, around their points and windows.
-- columns: rank, t (seconds), v, o, computed, stored_at (microseconds), of revisable series also available.
-- law: L2. What is held stays; everything offered is compared with it.
CREATE TEMP TABLE held AS
SELECT s.rank, epoch_us(e.t) // 1000000 AS t, e.v, e.o, epoch_us({{computed}}) AS computed, epoch_us(e.observed_at) AS stored_at{{available}}
FROM {{source}} e
JOIN series s ON e.metric = s.metric AND e."interval" = s."interval" AND e.asset = s.asset AND e.currency IS NOT DISTINCT FROM s.currency
  AND e.exchange IS NOT DISTINCT FROM s.exchange AND e.network IS NOT DISTINCT FROM s.network
  AND e.params IS NOT DISTINCT FROM s.params
WHERE {{range}}
