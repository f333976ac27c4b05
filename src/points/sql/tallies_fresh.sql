-- What each body brought inside its window, where all of that is new.
-- columns: as in tallies.
-- law: L5.
SELECT body, count(*) AS kept, min(t) AS first, max(t) AS last, count(*) AS added, min(t) AS added_first, max(t) AS added_last,
  count(json_extract(extra, '$.v')) AS beyond, 0 AS vintages
FROM fresh GROUP BY body
