-- digests: what is stored of each series and month.
-- columns: series (its n), month (`2024-06`), points, digest (16 hex signs: a sum of hashes of points, modulo 2^64).
-- law: L2. Sums over the journal. They speak of all points of a series only where they add up to all of its points.
CREATE TABLE IF NOT EXISTS digests (
  series INTEGER NOT NULL, month TEXT NOT NULL, points INTEGER NOT NULL, digest TEXT NOT NULL,
  PRIMARY KEY (series, month)
) WITHOUT ROWID;
