-- forgotten: points that went with a file, and whether they came again.
-- columns: series (its n), month, since and until (seconds), points and digest (NULL: not known), added_version,
--   regained_version (NULL until some came again), regained (how many), proven (1: as they were).
-- law: L2. What came again and is not proven is a new observation.
CREATE TABLE IF NOT EXISTS forgotten (
  series INTEGER NOT NULL, month TEXT NOT NULL, since INTEGER NOT NULL, until INTEGER NOT NULL, points INTEGER, digest TEXT,
  added_version INTEGER NOT NULL, regained_version INTEGER, regained INTEGER, proven INTEGER,
  PRIMARY KEY (series, month, added_version)
) WITHOUT ROWID;
