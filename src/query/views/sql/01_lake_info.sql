-- lake_info: one row with the identity and version of the lake. It also shows whether the lake was moved from its
--   folder.
-- law: L1. The view reads no data file: a moved lake can still report what to do. A commit after ledger_as_of is not
--   shown.
CREATE OR REPLACE VIEW lake_info AS
SELECT {{lake}} AS lake, CASE WHEN {{newest_by_then}} THEN CAST({{version}} AS BIGINT) END AS version,
  CASE WHEN {{newest_by_then}} THEN {{committed_at}} END AS committed_at,
  {{provider}} AS provider, {{synthetic}} AS synthetic, {{folder}} AS folder,
  CASE WHEN (SELECT count(*) FROM glob({{pattern lake.duckdb}})) = 0
    THEN 'this lake was moved: run pitlake views' ELSE 'in place' END AS state;
COMMENT ON VIEW lake_info IS 'One row: which lake this is. If a view fails with "No files found", look at state here: a lake that was moved or copied needs pitlake views.';
COMMENT ON COLUMN lake_info.lake IS 'identity of the lake, the same for ever';
COMMENT ON COLUMN lake_info.version IS 'newest commit that these views show';
COMMENT ON COLUMN lake_info.committed_at IS 'time of that commit';
COMMENT ON COLUMN lake_info.provider IS 'provider of the data';
COMMENT ON COLUMN lake_info.synthetic IS 'true if the data comes from the sandbox';
COMMENT ON COLUMN lake_info.folder IS 'folder for which the views were made; all files are named by their full path';
COMMENT ON COLUMN lake_info.state IS 'in place, or what to do';
