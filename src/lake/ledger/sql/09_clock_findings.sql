-- clock_findings: what contradicts an availability rule or the timestamp convention.
-- columns: series (its n), t (seconds), kind, detail (JSON), at (microseconds), added_version.
-- law: L4. One row per series, t and kind.
CREATE TABLE IF NOT EXISTS clock_findings (
  series INTEGER NOT NULL, t INTEGER NOT NULL, kind TEXT NOT NULL, detail TEXT NOT NULL, at INTEGER NOT NULL,
  added_version INTEGER NOT NULL, PRIMARY KEY (series, t, kind)
) WITHOUT ROWID;
