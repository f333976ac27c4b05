-- Writes the given rows as one Parquet file, in their order.
-- columns: those of the source.
-- law: L7. A dictionary treats -0.0 and 0.0 as one value. If the rows contain -0.0, the limit of dictionaries is 0.
COPY (SELECT * FROM {{source}} {{order}}) TO {{out}} (FORMAT parquet, PARQUET_VERSION v2, {{compression}},
  DICTIONARY_SIZE_LIMIT {{dictionary}}, ROW_GROUP_SIZE {{group}}{{metadata}})
