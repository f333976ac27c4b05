-- stamps: results that are pinned to a version.
-- columns: id, version, digest of the result file, query_digest, path, at (microseconds), detail (JSON).
-- law: L6. Vacuum keeps the files of these versions.
CREATE TABLE IF NOT EXISTS stamps (
  id TEXT PRIMARY KEY, version INTEGER NOT NULL, digest TEXT NOT NULL, query_digest TEXT NOT NULL, path TEXT,
  at INTEGER NOT NULL, detail TEXT NOT NULL
) WITHOUT ROWID;
