-- forgotten: points that were lost with a file, and whether they were received again.
-- columns: series (its n), month, since and until (seconds), points and digest (NULL: not known), added_version,
--   regained_version (NULL until some were received again), regained (how many), proven (1: with the same values).
-- law: L2. A point that was received again and is not proven is a new observation.
CREATE TABLE IF NOT EXISTS forgotten (
  series INTEGER NOT NULL, month TEXT NOT NULL, since INTEGER NOT NULL, until INTEGER NOT NULL, points INTEGER,
  digest TEXT, added_version INTEGER NOT NULL, regained_version INTEGER, regained INTEGER, proven INTEGER,
  PRIMARY KEY (series, month, added_version)
) WITHOUT ROWID;
