-- registry_file: writes one file of a registry table, one row for each line.
-- from: lines of JSON.
-- columns: those of the table; instants that all rows share are constants.
-- law: L3. The file stays in the spool until a commit names it. Rows keep the order of their lines.
--   Small row groups keep long records out of memory. For such groups the lowest level of zstd compresses as well as
--   the usual one.
COPY (
  SELECT {{columns}}
  FROM read_json({{lines}}, format = 'newline_delimited', hive_partitioning = false,
    columns = {{types}}, maximum_object_size = {{longest}})
) TO {{out}} (FORMAT parquet, PARQUET_VERSION v2, COMPRESSION zstd, COMPRESSION_LEVEL 1, ROW_GROUP_SIZE 4096{{metadata}})
