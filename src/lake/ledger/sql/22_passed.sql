-- passed: violations that answers no longer show, and when an answer showed one again.
-- columns: the key of its row in violations, added_version (of the commit that no longer saw it), reopened_version
--   (NULL: not seen again).
-- law: L2. Both values and both instants stay stored.
CREATE TABLE IF NOT EXISTS passed (
  series INTEGER NOT NULL, t INTEGER NOT NULL, kind TEXT NOT NULL, offered_key TEXT NOT NULL, incident TEXT NOT NULL,
  until INTEGER NOT NULL, added_version INTEGER NOT NULL, reopened_version INTEGER,
  PRIMARY KEY (series, t, kind, offered_key, incident, until, added_version)
) WITHOUT ROWID;
