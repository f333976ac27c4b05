-- Fresh points whose computed_at contradicts the interval's end or a stated instant.
-- columns: body, t, computed (microseconds), close, floor (seconds), early (before the end).
-- law: L1. Such a point is dated at the later instant; the contradiction is told.
SELECT body, t, computed, close, floor, computed < close * 1000000 AS early
FROM fresh
WHERE computed < floor * 1000000
ORDER BY body, t
