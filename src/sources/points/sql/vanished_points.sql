-- vanished_points: one row per known point inside a requested window that the answer lacks.
-- from: known_points, bodies, offered_points.
-- columns: body, t, kind (vanished), stored (JSON text), offered (NULL), stored_at.
-- law: L2. A point that goes away upstream stays here and is told. An answer that was made before the point was held (a
--   copy out of a cache) says nothing of it; clocks may differ by ten minutes.
SELECT b.body, k.t, 'vanished' AS kind, coalesce(k.o, k.digits, CAST(k.v AS VARCHAR), 'null') AS stored,
  CAST(NULL AS VARCHAR) AS offered, k.stored_at
FROM known_points k JOIN bodies b ON k.rank = b.rank AND k.ord < b.ord
WHERE b.compared AND (b.since IS NULL OR k.t >= b.since) AND (b.until IS NULL OR k.t < b.until)
  AND (k.ord >= 0 OR k.stored_at <= (b.horizon + 600) * 1000000)
  AND NOT EXISTS (FROM offered_points p WHERE p.body = b.body AND p.t = k.t)
ORDER BY b.body, k.t
