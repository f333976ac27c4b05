-- registry_start: one row with the time since which the registry is known; no row before that time.
-- columns: known_since, snapshot_date, as_of, as_of_at, source.
-- law: L1. Before its first snapshot nothing of the registry is known.
CREATE OR REPLACE VIEW registry_start AS
SELECT observed_at AS known_since, snapshot_date, as_of, as_of_at, source
FROM {{files snapshots}}
WHERE ({{unset as_of}} OR observed_at <= {{as_of}}) AND ({{unset observed_as_of}} OR observed_at <= {{observed_as_of}})
ORDER BY observed_at
LIMIT 1;
COMMENT ON VIEW registry_start IS 'The first snapshot. Before it the registry is not known.';
COMMENT ON COLUMN registry_start.known_since IS 'when this lake first stored a snapshot';
COMMENT ON COLUMN registry_start.snapshot_date IS 'its UTC day';
COMMENT ON COLUMN registry_start.as_of IS 'its as_of, as written';
COMMENT ON COLUMN registry_start.as_of_at IS 'the same as a timestamp';
COMMENT ON COLUMN registry_start.source IS 'snapshot, or lists if pitlake read the registry list by list, without a snapshot';
