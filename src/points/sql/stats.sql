-- What each staged body holds.
-- columns: body, points, moments (how many different t), told (computed not NULL), unsound, minus_zeros,
--   first and last (t).
-- law: L7. A body with as many points as moments holds no t twice.
SELECT body, count(*) AS points, count(DISTINCT t) AS moments, count(computed) AS told,
  count(*) FILTER (WHERE NOT sound) AS unsound, count(*) FILTER (WHERE v = 0 AND signbit(v)) AS minus_zeros,
  min(t) AS first, max(t) AS last
FROM {{source}}
GROUP BY body
