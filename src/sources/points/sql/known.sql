-- known: what is held and what this batch adds, with the body from which on it counts as known.
-- columns: rank, t, v, o, digits (see held), computed, stored_at (microseconds), ord (-1: held before).
-- law: L2.
CREATE TEMP VIEW known AS
SELECT rank, t, v, o, digits, computed, stored_at, -1 AS ord FROM held
UNION ALL
SELECT rank, t, v, o, CASE WHEN extra IS NOT NULL THEN json_extract_string(extra, '$.v') END, computed, {{observed}}, ord FROM fresh
