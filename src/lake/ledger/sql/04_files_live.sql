-- files_live: index of the live files by table, metric and interval.
-- columns: tbl, metric, interval.
-- law: L3. The views list exactly these files.
CREATE INDEX IF NOT EXISTS files_live ON files (tbl, metric, interval) WHERE removed_version IS NULL;
