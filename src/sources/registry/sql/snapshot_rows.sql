-- snapshot_rows: one row for each record and each snapshot date that showed it. If a day has several snapshots, the
--   last one counts.
-- from: layers of dated tables, snapshots.
-- columns: those of the files, each clock that of the snapshot, then snapshot_date.
-- law: L6. The layers of a date are a detail of storage and not shown. The long rows are on the probe side of the
--   joins.
SELECT dated.*
  REPLACE (chosen.as_of AS as_of, chosen.as_of_at AS as_of_at, chosen.observed_at AS observed_at), chosen.snapshot_date
FROM {{dated}} AS dated
JOIN (
  SELECT *, unnest([base, delta]) AS layer_shown FROM (
    FROM {{snapshots}} QUALIFY row_number() OVER (PARTITION BY resource, snapshot_date ORDER BY observed_at DESC) = 1
  )
) AS chosen ON chosen.layer_shown = dated.layer AND chosen.resource = dated."of table"
LEFT JOIN (
  SELECT DISTINCT "of table" AS resource, layer, entity FROM {{dated}} WHERE layer IN (SELECT delta FROM {{snapshots}})
) AS newer ON newer.layer = chosen.delta AND newer.entity = dated.entity AND newer.resource = chosen.resource
WHERE NOT dated.removed AND (chosen.delta = dated.layer OR newer.entity IS NULL)
