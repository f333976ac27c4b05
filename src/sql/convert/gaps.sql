-- Holes between the points of a body.
-- columns: body, since, until (half-open, seconds).
-- law: L5.
SELECT body, after AS since, t AS until
FROM (SELECT body, t, {{step}} AS after FROM (
  SELECT body, t, lag(t) OVER (PARTITION BY body ORDER BY t) AS earlier FROM {{source}}
))
WHERE after < t
ORDER BY body, since
