-- How computed_at lies to the end of the interval, for each body.
-- columns: body, told (points with computed_at), first (t), early, low, high (as in written).
-- law: L1. A body whose computed_at fits the other timestamp convention is told.
SELECT body, count(*) AS told, min(t) AS first, {{clocks}}
FROM fresh WHERE computed IS NOT NULL
GROUP BY body
