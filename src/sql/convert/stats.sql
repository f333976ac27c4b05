-- What each staged body holds.
-- columns: body, points, told (computed not NULL), unsound, minus_zeros, disorder (points that do not lie behind the one
--   before), first and last (t).
-- law: L7. A body that is in order holds no t twice.
SELECT body, count(*) AS points, count(computed) AS told, count(*) FILTER (WHERE NOT sound) AS unsound,
  count(*) FILTER (WHERE v = 0 AND signbit(v)) AS minus_zeros,
  count(*) FILTER (WHERE (body_before = body AND t <= t_before) OR body_before > body) AS disorder,
  min(t) AS first, max(t) AS last
FROM (SELECT *, lag(body) OVER () AS body_before, lag(t) OVER () AS t_before FROM {{source}})
GROUP BY body
