-- soft: facts that are noted without a version of their own, such as the time of the last poll and ETags.
-- columns: key, value (JSON), at (microseconds; the latest wins).
-- law: L4. A note creates no version.
CREATE TABLE IF NOT EXISTS soft (key TEXT PRIMARY KEY, value TEXT NOT NULL, at INTEGER NOT NULL) WITHOUT ROWID;
