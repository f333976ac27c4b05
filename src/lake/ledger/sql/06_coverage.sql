-- coverage: the state of every window, now and in every earlier version.
-- columns: series (its n), since and until (seconds, half-open), state, reason, asked_at (seconds), request,
--   added_version, removed_version (NULL while it holds).
-- law: L5. Live rows of one series are disjoint.
CREATE TABLE IF NOT EXISTS coverage (
  series INTEGER NOT NULL, since INTEGER NOT NULL, until INTEGER NOT NULL, state TEXT NOT NULL, reason TEXT,
  asked_at INTEGER NOT NULL, request TEXT, added_version INTEGER NOT NULL, removed_version INTEGER,
  PRIMARY KEY (series, since, added_version)
) WITHOUT ROWID;
