-- violations: upstream values that contradict stored ones.
-- columns: series (its n), t (seconds), kind, stored and offered (JSON text), offered_key (offered, or '' for none),
--   stored_at and offered_at (microseconds), request, added_version, incident (its id, '' for one by itself), until and
--   points (of a window whose points were all missing: its end in seconds, else 0, and how many).
-- law: L2, L4. One row per series, t, kind and offered value, and the like of each incident.
CREATE TABLE IF NOT EXISTS violations (
  series INTEGER NOT NULL, t INTEGER NOT NULL, kind TEXT NOT NULL, stored TEXT, offered TEXT, offered_key TEXT NOT NULL,
  stored_at INTEGER, offered_at INTEGER NOT NULL, request TEXT, added_version INTEGER NOT NULL,
  incident TEXT NOT NULL DEFAULT '', until INTEGER NOT NULL DEFAULT 0, points INTEGER NOT NULL DEFAULT 1,
  PRIMARY KEY (series, t, kind, offered_key, incident, until)
) WITHOUT ROWID;
