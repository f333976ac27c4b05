-- lake_digest: SHA-256 of the newest commit's entry, hex; it covers every entry before it.
-- columns: a scalar, VARCHAR.
-- law: L6. Equal digests are equal lakes.
CREATE OR REPLACE MACRO lake_digest() AS CASE WHEN {{newest_by_then}} THEN {{digest}} END;
COMMENT ON MACRO lake_digest IS 'lake_digest(): SHA-256 of the newest commit, which covers every commit before it.';
