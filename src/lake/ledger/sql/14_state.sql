-- state: named values that are committed together with the data, such as the cursor, the epoch and the week start.
-- columns: key, value (JSON), version that set it.
-- law: L3. A cursor is never ahead of the events that were stored up to it.
CREATE TABLE IF NOT EXISTS state (key TEXT PRIMARY KEY, value TEXT NOT NULL, version INTEGER NOT NULL) WITHOUT ROWID;
