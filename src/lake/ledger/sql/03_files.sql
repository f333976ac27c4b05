-- files: every file that a journal entry ever named.
-- columns: path and label (one file may be listed under several labels), tbl, metric, interval, rows, bytes, min_t
--   and max_t (seconds), digest of the content, sha256 of the bytes, meta (JSON), and the versions that added,
--   removed and dropped the file.
-- law: L2, L6. A file is live from added_version until removed_version. Its bytes exist until dropped_version.
CREATE TABLE IF NOT EXISTS files (
  path TEXT NOT NULL, label TEXT NOT NULL, tbl TEXT NOT NULL, metric TEXT, interval TEXT, rows INTEGER NOT NULL,
  bytes INTEGER NOT NULL, min_t INTEGER, max_t INTEGER, digest TEXT, sha256 TEXT NOT NULL, meta TEXT NOT NULL,
  added_version INTEGER NOT NULL, removed_version INTEGER, dropped_version INTEGER, PRIMARY KEY (path, label)
);
