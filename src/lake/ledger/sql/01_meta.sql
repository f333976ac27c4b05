-- meta: facts of the index about itself.
-- columns: key (lake, schema, version, digest, committed_at, provider, live: see live-digest.ts), value as JSON text.
-- law: L3. `version` and `digest` name the last journal entry that was applied. They change in the same transaction
--   as all other tables.
CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
