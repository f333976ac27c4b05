-- early_points: one row per new point whose computed_at lies before its interval's end or a stated instant.
-- from: new_points.
-- columns: body, t, computed (microseconds), close, floor (seconds), early (before the end).
-- law: L1. Such a point is dated at the later instant; the contradiction is told.
SELECT body, t, computed, close, floor, computed < close * 1000000 AS early
FROM new_points
WHERE computed < floor * 1000000
ORDER BY body, t
