-- computed_at_lags: one row per body: how the computed_at of its new points lie to the end of the interval.
-- from: new_points.
-- columns: body, told (points with computed_at), first (t), early, low, high (lag behind the end, microseconds: the smallest and the largest).
-- law: L1. A body whose computed_at fits the other timestamp convention is told.
SELECT body, count(*) AS told, min(t) AS first, {{clocks}}
FROM new_points WHERE computed IS NOT NULL
GROUP BY body
