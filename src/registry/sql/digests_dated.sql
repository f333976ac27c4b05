-- digests_dated: the rows of the layers that snapshots showed, of several a day those of the last one.
-- columns: those of the files, each clock that of the snapshot, then snapshot_date, newest (the layer that replaces others).
-- law: L6. Which layers a date is made of is nobody's business but the lake's.
SELECT dated.* REPLACE (chosen.as_of AS as_of, chosen.as_of_at AS as_of_at, chosen.observed_at AS observed_at),
  chosen.snapshot_date, chosen.delta AS newest
FROM (
  SELECT *, unnest([base, delta]) AS shown FROM (
    FROM {{snapshots}} WHERE resource = {{resource}} AND snapshot_date >= DATE '{{since}}'
    QUALIFY row_number() OVER (PARTITION BY snapshot_date ORDER BY observed_at DESC) = 1
  )
) AS chosen
JOIN {{dated}} AS dated ON dated.layer = chosen.shown
WHERE NOT dated.removed
