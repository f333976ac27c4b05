-- accepted: acknowledgements of violations, of incidents, and of refusals of series that have points.
-- columns: id (see violationId; an incident has its own), series (its n), t (seconds), kind, offered_key (the offered
--   value, or '' if there is none), why, at (microseconds), added_version.
-- law: L2. An acknowledgement changes no data. A further offered value is a new violation.
CREATE TABLE IF NOT EXISTS accepted (
  id TEXT NOT NULL PRIMARY KEY, series INTEGER NOT NULL, t INTEGER NOT NULL, kind TEXT NOT NULL,
  offered_key TEXT NOT NULL, why TEXT NOT NULL, at INTEGER NOT NULL, added_version INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS accepted_points ON accepted (series, t, kind, offered_key);
