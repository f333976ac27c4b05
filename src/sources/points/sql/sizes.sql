-- The compressed bytes of every column of some Parquet files together, read from their footers.
-- columns: column, bytes.
-- law: none; it measures.
SELECT path_in_schema AS "column", sum(total_compressed_size) AS bytes
FROM parquet_metadata({{files}}) GROUP BY ALL
