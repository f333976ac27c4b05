-- accepted: violations, incidents, and refusals of series that have points, of which a person took note.
-- columns: id (see violationId; of an incident its own), series (its n), t (seconds), kind, offered_key (offered, or '' for
--   none), why, at (microseconds), added_version.
-- law: L2. Changes no data; a further offered value is a violation of its own.
CREATE TABLE IF NOT EXISTS accepted (
  id TEXT NOT NULL PRIMARY KEY, series INTEGER NOT NULL, t INTEGER NOT NULL, kind TEXT NOT NULL,
  offered_key TEXT NOT NULL, why TEXT NOT NULL, at INTEGER NOT NULL, added_version INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS accepted_points ON accepted (series, t, kind, offered_key);
