-- coverage_live: the windows that hold now.
-- columns: series, since.
-- law: L5. Planning reads 100,000 series through it.
CREATE INDEX IF NOT EXISTS coverage_live ON coverage (series, since) WHERE removed_version IS NULL;
