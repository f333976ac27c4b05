-- rewritten_vintages: one row per offered vintage whose value differs from the first value of the same date.
-- from: dated_values (new_vintages.sql).
-- columns: as in differing_points.
-- law: L2. A dated vintage is no more rewritten than a point in time.
SELECT body, t, CASE WHEN first.v IS NULL AND first.o IS NULL THEN 'null_filled' ELSE 'changed' END AS kind,
  coalesce(first.o, first.digits, CAST(first.v AS VARCHAR), 'null') AS stored, coalesce(o, digits, CAST(v AS VARCHAR), 'null') AS offered,
  first.seen AS stored_at
FROM dated_values WHERE body IS NOT NULL AND is_other(first.v, first.o, first.digits, v, o, digits)
ORDER BY body, t, dated, ord, place
