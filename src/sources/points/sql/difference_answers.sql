-- difference_answers: one row per stored point and difference on record: the last answer that speaks of the point.
-- from: open_differences, stored_points, bodies, offered_points.
-- columns: n (of the difference), t, body (NULL: none speaks of it).
-- law: L2. What a later answer no longer shows has passed. One that was made before the difference was seen (a copy out of a
--   cache) says nothing of it; clocks may differ by ten minutes.
SELECT s.n, h.t, arg_max(b.body, b.ord) FILTER (WHERE p.body IS NOT NULL
  OR (b.body IS NOT NULL AND (b.since IS NULL OR h.t >= b.since) AND (b.until IS NULL OR h.t < b.until))) AS body
FROM open_differences s JOIN stored_points h ON h.rank = s.rank AND h.t >= s.t AND h.t < s.until
LEFT JOIN bodies b ON b.rank = s.rank AND b.compared AND b.horizon + 600 >= s.offered_at
LEFT JOIN (SELECT DISTINCT body, t FROM offered_points WHERE compared) p ON p.body = b.body AND p.t = h.t
GROUP BY s.n, h.t
ORDER BY s.n, h.t
