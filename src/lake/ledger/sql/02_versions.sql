-- versions: one row a commit.
-- columns: version, committed_at (microseconds, strictly increasing), job, run, program, digest of the entry,
--   provider as JSON, how many files it added, removed and dropped, points added,
--   leaf (what the log of versions says of it beside version and digest, see log.ts; it outlives the entry).
-- law: L6. `observed_as_of` is answered by committed_at.
CREATE TABLE IF NOT EXISTS versions (
  version INTEGER PRIMARY KEY, committed_at INTEGER NOT NULL UNIQUE, job TEXT NOT NULL, run TEXT, program TEXT NOT NULL,
  digest TEXT NOT NULL, provider TEXT NOT NULL, files_added INTEGER NOT NULL, files_removed INTEGER NOT NULL,
  files_dropped INTEGER NOT NULL, points_added INTEGER NOT NULL, leaf TEXT NOT NULL
);
