-- body_stats: one row per staged body: how many points it holds, and in which order.
-- from: typed_points or points_by_value.
-- columns: body, points, back and forth (how many t do not lie behind, or not before, the one that came before it in the
--   body), runs (in how many pieces the body stands), told (computed not NULL), unsound (t is NULL), minus_zeros, first and last (t).
-- law: L7. A body in one piece that goes only forth, or only back, holds no t twice: to count them costs five times as much.
SELECT body, count(*) AS points, count(*) FILTER (WHERE within AND t <= before) AS back,
  count(*) FILTER (WHERE within AND t >= before) AS forth, count(*) FILTER (WHERE NOT within) AS runs,
  count(computed) AS told, count(*) - count(t) AS unsound,
  count(*) FILTER (WHERE v = 0 AND signbit(v)) AS minus_zeros, min(t) AS first, max(t) AS last
FROM (SELECT *, coalesce(lag(body) OVER () = body, false) AS within, lag(t) OVER () AS before FROM {{source}})
GROUP BY body
