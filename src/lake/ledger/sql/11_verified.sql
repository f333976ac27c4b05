-- verified: windows that were requested again, with the result of each: compared with what is stored, refused, or
--   unanswered.
-- columns: series id, since and until (seconds), at (microseconds), result.
-- law: L2. The table is exempt from L4.
CREATE TABLE IF NOT EXISTS verified (
  series TEXT NOT NULL, since INTEGER NOT NULL, until INTEGER NOT NULL, at INTEGER NOT NULL, result TEXT NOT NULL,
  PRIMARY KEY (series, since, until, at)
) WITHOUT ROWID;
