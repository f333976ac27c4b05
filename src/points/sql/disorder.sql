-- Points of the written file that do not lie behind the one before: the first ones of bodies, and any that are out of order.
-- columns: row (position in the file).
-- law: L7. A body that is in order holds no t twice.
SELECT row
FROM (
  SELECT t, lag(t) OVER () AS t_before, file_row_number AS row, lag(file_row_number) OVER () AS row_before
  FROM read_parquet({{file}}, hive_partitioning = false, file_row_number = true)
)
WHERE t <= t_before OR row <> row_before + 1
LIMIT {{limit}}
