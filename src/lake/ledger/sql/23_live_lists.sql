-- live_lists: one row for each table and metric with live files (live-lists.ts).
-- columns: tbl, metric (`-` for none), digest (SHA-256 of the list of its live files).
-- law: L6. Every version commits to all of these lists. No file can be left out or brought back later without a
--   trace.
CREATE TABLE IF NOT EXISTS live_lists (
  tbl TEXT NOT NULL, metric TEXT NOT NULL, digest TEXT NOT NULL, PRIMARY KEY (tbl, metric)
) WITHOUT ROWID;
