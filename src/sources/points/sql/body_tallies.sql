-- body_tallies: one row per body: how many points it brought inside its window, and how many of them are new.
-- from: offered_points, new_points.
-- columns: body, kept, first and last (t of those), added, added_first, added_last, beyond (of the added ones whose
--   integer a double does not hold), vintages (of the added ones those of points that had a value before).
-- law: L5.
SELECT body, kept, p.first, p.last, coalesce(added, 0) AS added, f.first AS added_first, f.last AS added_last,
  coalesce(beyond, 0) AS beyond, coalesce(vintages, 0) AS vintages
FROM (SELECT body, count(*) AS kept, min(t) AS first, max(t) AS last FROM offered_points WHERE keep GROUP BY body) p
LEFT JOIN (SELECT body, count(*) AS added, min(t) AS first, max(t) AS last, count(json_extract(extra, '$.v')) AS beyond,
  {{vintages}} AS vintages FROM new_points GROUP BY body) f USING (body)
