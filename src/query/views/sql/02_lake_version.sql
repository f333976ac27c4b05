-- lake_version: the newest commit that these views show.
-- columns: a scalar, BIGINT.
-- law: L6. Written next to a result, it records which version of the lake produced the result.
CREATE OR REPLACE MACRO lake_version() AS CASE WHEN {{newest_by_then}} THEN CAST({{version}} AS BIGINT) END;
COMMENT ON MACRO lake_version IS 'lake_version(): the newest commit that these views show.';
