-- soft: facts noted in passing, which make no version (time of the last poll, ETags).
-- columns: key, value (JSON), at (microseconds; the latest wins).
-- law: L4.
CREATE TABLE IF NOT EXISTS soft (key TEXT PRIMARY KEY, value TEXT NOT NULL, at INTEGER NOT NULL) WITHOUT ROWID;
