-- runs: every run, its plan against what it did.
-- columns: id, job, command, started_at and ended_at (microseconds), stopped_by, exit_code, plan and actual (JSON).
-- law: exempt from L4.
CREATE TABLE IF NOT EXISTS runs (
  id TEXT PRIMARY KEY, job TEXT, command TEXT, started_at INTEGER, ended_at INTEGER, stopped_by TEXT, exit_code INTEGER,
  plan TEXT, actual TEXT
) WITHOUT ROWID;
