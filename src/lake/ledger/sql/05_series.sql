-- series: every series ever asked for.
-- columns: n (short number, in the journal's order), id, the six dimensions, params (JSON), settled (interval under which
--   the points stand), points held, first and last t (seconds), the version that named it first.
-- law: L4. points, first_t and last_t are the sums over the journal, so a second run finds nothing to add.
CREATE TABLE IF NOT EXISTS series (
  n INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, metric TEXT NOT NULL, asset TEXT NOT NULL, interval TEXT, currency TEXT,
  exchange TEXT, network TEXT, params TEXT NOT NULL, settled TEXT, points INTEGER NOT NULL DEFAULT 0, first_t INTEGER,
  last_t INTEGER, added_version INTEGER NOT NULL
);
