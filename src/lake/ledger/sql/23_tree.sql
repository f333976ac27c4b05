-- tree: the state of the lake as a tree of trees (src/base/merkle/state.ts), which every entry tells the root of.
-- columns: grp (rules, state, registry, or `series <metric>`; '' for the groups themselves), name, value.
-- law: L6. Values are digests of content: whoever merges, vacuums or copies a lake leaves them as they are.
CREATE TABLE IF NOT EXISTS tree (
  grp TEXT NOT NULL, name TEXT NOT NULL, value TEXT NOT NULL, PRIMARY KEY (grp, name)
) WITHOUT ROWID;
