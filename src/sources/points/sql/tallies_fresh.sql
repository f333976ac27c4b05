-- What each body brought inside its window, where all of that is new.
-- columns: as in tallies.
-- law: L5.
SELECT *, kept AS added, first AS added_first, last AS added_last, 0 AS vintages
FROM (
  SELECT body, count(*) AS kept, min(t) AS first, max(t) AS last, count(json_extract(extra, '$.v')) AS beyond FROM fresh GROUP BY body
)
