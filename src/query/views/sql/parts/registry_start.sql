-- Since when the registry is known: its first snapshot, as far as it is known at as_of.
_pit_start AS (
  SELECT min(observed_at) AS known_since FROM {{files snapshots}}
  WHERE ({{unset as_of}} OR observed_at <= {{as_of}} OR {{registry_backfill}})
    AND ({{unset observed_as_of}} OR observed_at <= {{observed_as_of}})
)
