-- snapshot_rows: one row per record and snapshot date that showed it; of several snapshots of a day the last counts.
-- from: layers of dated tables, snapshots.
-- columns: those of the files, each clock that of the snapshot, then snapshot_date.
-- law: L6. Which layers a date is made of is nobody's business but the lake's. Long rows pass by what is joined to them.
SELECT dated.* REPLACE (chosen.as_of AS as_of, chosen.as_of_at AS as_of_at, chosen.observed_at AS observed_at), chosen.snapshot_date
FROM {{dated}} AS dated
JOIN (
  SELECT *, unnest([base, delta]) AS shown FROM (
    FROM {{snapshots}} QUALIFY row_number() OVER (PARTITION BY resource, snapshot_date ORDER BY observed_at DESC) = 1
  )
) AS chosen ON chosen.shown = dated.layer AND chosen.resource = dated."of table"
LEFT JOIN (
  SELECT DISTINCT "of table" AS resource, layer, entity FROM {{dated}} WHERE layer IN (SELECT delta FROM {{snapshots}})
) AS newer ON newer.layer = chosen.delta AND newer.entity = dated.entity AND newer.resource = chosen.resource
WHERE NOT dated.removed AND (chosen.delta = dated.layer OR newer.entity IS NULL)
