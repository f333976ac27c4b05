-- coverage_live: index of the coverage ranges that are valid now.
-- columns: series, since.
-- law: L5. Planning reads 100,000 series through it.
CREATE INDEX IF NOT EXISTS coverage_live ON coverage (series, since) WHERE removed_version IS NULL;
