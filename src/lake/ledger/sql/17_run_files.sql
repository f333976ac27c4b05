-- run_files: how far each file of runs/ has been read.
-- columns: name, offset of the first byte not yet applied.
-- law: L3.
CREATE TABLE IF NOT EXISTS run_files (name TEXT PRIMARY KEY, offset INTEGER NOT NULL) WITHOUT ROWID;
