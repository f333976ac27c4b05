-- series: every series that was ever requested.
-- columns: n (short number, in the order of the journal), id, the six dimensions, params (JSON), settled (interval
--   under which its points are stored), points (how many are stored), first_t and last_t (seconds), added_version (of
--   the commit that named it first).
-- law: L4. points, first_t and last_t are totals over the journal. A second run therefore finds nothing to add.
CREATE TABLE IF NOT EXISTS series (
  n INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, metric TEXT NOT NULL, asset TEXT NOT NULL, interval TEXT,
  currency TEXT, exchange TEXT, network TEXT, params TEXT NOT NULL, settled TEXT, points INTEGER NOT NULL DEFAULT 0, first_t INTEGER,
  last_t INTEGER, added_version INTEGER NOT NULL
);
