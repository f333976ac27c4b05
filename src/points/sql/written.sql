-- What the written file holds, read back from it, series by series and part by part of the asked time.
-- columns: asset, currency, exchange, network, params, part, rows, numbers (v not NULL), zeros, told (the provider said
--   when it computed them), first and last (t, seconds), first_row and last_row (positions in the file), min_available and max_available
--   (microseconds), min_lag (microseconds from the interval's end to available_at, the smallest), early, low and high (as
--   in stats), digest (a sum of hashes: independent of the order of rows).
-- law: L3. What is committed is what can be read.
SELECT asset, currency, exchange, network, params, {{part}} AS part, count(*) AS rows, count(v) AS numbers,
  count(*) FILTER (WHERE v = 0) AS zeros, count({{computed}}) AS told, min(mark) AS first, max(mark) AS last,
  min(file_row_number) AS first_row, max(file_row_number) AS last_row, epoch_us(min(available_at)) AS min_available,
  epoch_us(max(available_at)) AS max_available, min(epoch_us(available_at) - {{end}} * 1000000) AS min_lag,
  {{clocks}}, {{digest}} AS digest
FROM (
  SELECT *, epoch_us(t) // 1000000 AS mark
  FROM read_parquet({{file}}, hive_partitioning = false, file_row_number = true)
)
GROUP BY ALL
