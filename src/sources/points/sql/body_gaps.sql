-- body_gaps: one row per stretch of missing points between two points of a body.
-- from: offered_points.
-- columns: body, since, until (half-open, seconds).
-- law: L5.
SELECT body, after AS since, t AS until
FROM (SELECT body, t, lag(close) OVER (PARTITION BY body ORDER BY t) AS after FROM offered_points WHERE keep AND body IN ({{bodies}}))
WHERE after < t
ORDER BY body, since
