-- column_sizes: one row per column: the compressed bytes of it in some Parquet files together.
-- from: the footers of the files.
-- columns: column, bytes.
-- law: none; it measures.
SELECT path_in_schema AS "column", sum(total_compressed_size) AS bytes
FROM parquet_metadata({{files}}) GROUP BY ALL
