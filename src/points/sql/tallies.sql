-- What each body brought inside its window.
-- columns: body, kept, first and last (t of those), added, added_first, added_last.
-- law: L5.
SELECT body, kept, p.first, p.last, coalesce(added, 0) AS added, f.first AS added_first, f.last AS added_last
FROM (SELECT body, count(*) AS kept, min(t) AS first, max(t) AS last FROM offered WHERE keep GROUP BY body) p
LEFT JOIN (SELECT body, count(*) AS added, min(t) AS first, max(t) AS last FROM fresh GROUP BY body) f USING (body)
