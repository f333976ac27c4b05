-- Vintages of one instant that come with another value than the one that is held, or that came with them.
-- columns: as in differences.
-- law: L2. A dated vintage is no more rewritten than a point in time.
SELECT body, t, CASE WHEN before.v IS NULL AND before.o IS NULL THEN 'null_filled' ELSE 'changed' END AS kind,
  coalesce(before.o, CAST(before.v AS VARCHAR), 'null') AS stored, coalesce(o, CAST(v AS VARCHAR), 'null') AS offered,
  before.seen AS stored_at
FROM vintage_line WHERE body IS NOT NULL AND before.stands = stands AND is_other(before.v, before.o, v, o)
ORDER BY body, t
