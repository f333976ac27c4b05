-- verified: windows that were asked again and compared with what is stored.
-- columns: series id, since and until (seconds), at (microseconds), result.
-- law: L2. Exempt from L4.
CREATE TABLE IF NOT EXISTS verified (
  series TEXT NOT NULL, since INTEGER NOT NULL, until INTEGER NOT NULL, at INTEGER NOT NULL, result TEXT NOT NULL,
  PRIMARY KEY (series, since, until, at)
) WITHOUT ROWID;
