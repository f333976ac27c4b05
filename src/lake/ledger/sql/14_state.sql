-- state: named pieces of state that are committed with the data (cursor, epoch, week start).
-- columns: key, value (JSON), version that set it.
-- law: L3. A cursor is never ahead of the events that it stands behind.
CREATE TABLE IF NOT EXISTS state (key TEXT PRIMARY KEY, value TEXT NOT NULL, version INTEGER NOT NULL) WITHOUT ROWID;
