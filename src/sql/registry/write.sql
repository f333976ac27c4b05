-- write: the rows of one file of a registry table, from lines of JSON.
-- columns: those of the table; instants that are the same for all rows are constants.
-- law: L3. The file stays in the spool until a commit names it.
COPY (
  SELECT {{columns}}
  FROM read_json({{lines}}, format = 'newline_delimited', columns = {{types}}, maximum_object_size = {{longest}})
  {{order}}
) TO {{out}} (FORMAT parquet, PARQUET_VERSION v2, COMPRESSION zstd, KV_METADATA {{metadata}})
