-- _pit_start: one row with known_since, the time of the first snapshot of the registry that is known at as_of. Before
--   it the registry is not known.
_pit_start AS (
  SELECT min(observed_at) AS known_since FROM {{files snapshots}}
  WHERE ({{unset as_of}} OR observed_at <= {{as_of}} OR {{registry_backfill}})
    AND ({{unset observed_as_of}} OR observed_at <= {{observed_as_of}})
)
