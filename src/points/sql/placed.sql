-- The points of the written file with the body that brought them.
-- columns: body, t and close (start and end of the interval, seconds).
-- law: L5.
SELECT body, t, {{close}} AS close
FROM (
  SELECT file_row_number, epoch_us(t) // 1000000 AS t
  FROM read_parquet({{file}}, hive_partitioning = false, file_row_number = true)
)
JOIN ({{places}})
  ON file_row_number BETWEEN first_row AND last_row
