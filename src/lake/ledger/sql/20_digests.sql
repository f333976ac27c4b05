-- digests: one row for each series and month with a digest of the stored points.
-- columns: series (its n), month (`2024-06`), points, digest (16 hex digits: a sum of hashes of points, modulo 2^64).
-- law: L2. Rows are totals over the journal. They describe a series completely only if their points add up to all of
--   its points.
CREATE TABLE IF NOT EXISTS digests (
  series INTEGER NOT NULL, month TEXT NOT NULL, points INTEGER NOT NULL, digest TEXT NOT NULL,
  PRIMARY KEY (series, month)
) WITHOUT ROWID;
