-- lake_digest: SHA-256 of the newest commit's journal entry, hex. It covers every earlier entry.
-- columns: a scalar, VARCHAR.
-- law: L6. Two lakes with equal digests are equal.
CREATE OR REPLACE MACRO lake_digest() AS CASE WHEN {{newest_by_then}} THEN {{digest}} END;
COMMENT ON MACRO lake_digest IS 'lake_digest(): SHA-256 of the newest commit, which covers every commit before it.';
