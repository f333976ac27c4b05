-- partition_shares: one row per partition: rows, bounds and digest of what some points hold of it.
-- from: a relation of points with metric and interval.
-- columns: metric, interval, rows, first and last (t, seconds), min_available and max_available (microseconds), min_lag
--   (microseconds from the interval's end to available_at, the smallest), minus_zeros, digest (a sum of hashes: independent
--   of the order of rows and of their spread over files).
-- law: L3. What is committed is what can be read.
SELECT metric, "interval", count(*) AS rows, epoch_us(min(t)) // 1000000 AS first, epoch_us(max(t)) // 1000000 AS last,
  epoch_us(min(available_at)) AS min_available, epoch_us(max(available_at)) AS max_available,
  min(epoch_us(available_at) - {{end}}) AS min_lag, count(*) FILTER (WHERE v = 0 AND signbit(v)) AS minus_zeros,
  {{digest}} AS digest
FROM {{source}}
GROUP BY metric, "interval"
ORDER BY metric, "interval"
