-- The compressed bytes of every column of some Parquet files, read from their footers.
-- columns: file, column, bytes, rows (those of the column's chunks).
-- law: none; it measures.
SELECT file_name AS file, path_in_schema AS "column", sum(total_compressed_size) AS bytes, sum(num_values) AS rows
FROM parquet_metadata({{files}}) GROUP BY ALL
