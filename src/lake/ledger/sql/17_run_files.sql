-- run_files: how far each file of runs/ was read.
-- columns: name, offset of the first byte that was not applied.
-- law: L3. After a crash, reading continues at the offset.
CREATE TABLE IF NOT EXISTS run_files (name TEXT PRIMARY KEY, offset INTEGER NOT NULL) WITHOUT ROWID;
