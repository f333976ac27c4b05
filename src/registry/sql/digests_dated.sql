-- digests_dated: the rows of a dated table as snapshots showed them, of several a day the last one, with the day.
-- columns: those of the files, each clock that of the snapshot, then snapshot_date.
-- law: L6. Which layers a date is made of is nobody's business but the lake's.
SELECT * EXCLUDE (is_base) FROM (
  SELECT dated.* REPLACE (chosen.as_of AS as_of, chosen.as_of_at AS as_of_at, chosen.observed_at AS observed_at),
    chosen.snapshot_date, dated.layer = chosen.base AS is_base
  FROM (
    FROM {{snapshots}} WHERE resource = {{resource}} AND snapshot_date >= DATE '{{since}}'
    QUALIFY row_number() OVER (PARTITION BY snapshot_date ORDER BY observed_at DESC) = 1
  ) AS chosen JOIN {{dated}} AS dated ON dated.layer IN (chosen.base, chosen.delta)
  QUALIFY NOT is_base OR bool_and(is_base) OVER (PARTITION BY chosen.snapshot_date, entity)
) WHERE NOT removed
