-- meta: what the index knows of itself.
-- columns: key (lake, schema, version, digest, committed_at, provider, live: see live-digest.ts), value as JSON text.
-- law: L3. `version` and `digest` name the last journal entry applied; they change in the same transaction as the rest.
CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
