-- requests: every request to an API, without its key.
-- columns: id, run, api, path, query (JSON), series id, since and until (seconds), status, outcome, points, bytes, credits,
--   attempts, asked_at (microseconds), seconds, detail (JSON), provider_date (seconds)
--   that the answer carried.
-- law: L8. Exempt from L4: asking again leaves rows here.
CREATE TABLE IF NOT EXISTS requests (
  id TEXT PRIMARY KEY, run TEXT NOT NULL, api TEXT NOT NULL, path TEXT NOT NULL, query TEXT NOT NULL, series TEXT,
  since INTEGER, until INTEGER, status INTEGER, outcome TEXT NOT NULL, points INTEGER, bytes INTEGER, credits REAL,
  attempts INTEGER NOT NULL, asked_at INTEGER NOT NULL, seconds REAL, detail TEXT NOT NULL,
  provider_date REAL
) WITHOUT ROWID;
