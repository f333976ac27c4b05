-- value_types: which types the values of a metric have at which place, and since when.
-- columns: metric, path and parent (parent: NULL for the value itself), type, after_type (behind which it came again, ''
--   at first sight), available_at and ruled_at (microseconds; ruled_at where the rule stands in for backfilled points;
--   NULL: it never came again by that clock), added_version, removed_version.
-- law: L1, L4. One row per place and type; a further one only where points show it that could be known earlier.
CREATE TABLE IF NOT EXISTS value_types (
  metric TEXT NOT NULL, path TEXT NOT NULL, parent TEXT, type TEXT NOT NULL, after_type TEXT NOT NULL,
  available_at INTEGER, ruled_at INTEGER, added_version INTEGER NOT NULL, removed_version INTEGER,
  PRIMARY KEY (metric, path, type, after_type, added_version)
) WITHOUT ROWID;
