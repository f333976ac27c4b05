-- vanished_vintages: one row per body: the stored points of a revisable series that it lacks.
-- from: stored_points, bodies, offered_points.
-- columns: body, t (the first), last, points.
-- law: L2. They stay, and are told. As in vanished_points, a copy out of a cache says nothing of what came after it.
SELECT b.body, min(h.t) AS t, max(h.t) AS last, count(DISTINCT h.t) AS points
FROM stored_points h JOIN bodies b ON h.rank = b.rank
WHERE b.revises AND b.revisable = 'observed' AND (b.since IS NULL OR h.t >= b.since) AND (b.until IS NULL OR h.t < b.until)
  AND h.stored_at <= (b.horizon + 600) * 1000000
  AND NOT EXISTS (FROM offered_points p WHERE p.body = b.body AND p.t = h.t)
GROUP BY b.body ORDER BY b.body
