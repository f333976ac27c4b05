-- What the ledger keeps of a points file, read back from it.
-- columns: min_t and max_t (seconds), min_available, max_available (microseconds), min_lag (microseconds from the
--   interval's end to available_at, the smallest).
-- law: L3. What is committed is what can be read.
SELECT epoch_us(min(t)) // 1000000 AS min_t, epoch_us(max(t)) // 1000000 AS max_t,
  epoch_us(min(available_at)) AS min_available, epoch_us(max(available_at)) AS max_available,
  min(epoch_us(available_at) - {{end}} * 1000000) AS min_lag
FROM (SELECT t, available_at, epoch_us(t) // 1000000 AS mark FROM {{source}})
