-- Fresh points whose computed_at contradicts the interval's end or a stated instant.
-- columns: body, t, computed (microseconds), close, stated (seconds), early (before the end).
-- law: L1. Such a point is dated at the later instant; the contradiction is told.
SELECT body, t, computed, close, stated, computed < close * 1000000 AS early
FROM (SELECT body, t, computed, {{end}} AS close, {{floor}} AS stated FROM fresh WHERE computed IS NOT NULL)
WHERE computed < stated * 1000000
ORDER BY body, t
