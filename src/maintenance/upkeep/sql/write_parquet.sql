-- One Parquet file of the given rows, in their order.
-- columns: those of the source.
-- law: L7. A dictionary takes -0.0 and 0.0 for one value: where a -0.0 is inside the limit is 0.
COPY (SELECT * FROM {{source}} {{order}}) TO {{out}} (FORMAT parquet, PARQUET_VERSION v2, {{compression}},
  DICTIONARY_SIZE_LIMIT {{dictionary}}, ROW_GROUP_SIZE {{group}}{{metadata}})
