-- known: what is held and what this batch adds, with the body from which on it counts as known.
-- columns: rank, t, v, o, computed, stored_at (microseconds), ord (-1: held before).
-- law: L2.
CREATE TEMP VIEW known AS
SELECT rank, t, v, o, computed, stored_at, -1 AS ord FROM held
UNION ALL
SELECT rank, t, v, o, computed, {{observed}}, ord FROM fresh
