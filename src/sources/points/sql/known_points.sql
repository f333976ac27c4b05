-- known_points: one row per point that is stored or that this batch adds, with the body from which on it counts as known.
-- from: stored_points, new_points.
-- columns: rank, t, v, o, digits (see stored_points), computed, stored_at (microseconds), ord (-1: stored before).
-- law: L2.
CREATE TEMP VIEW known_points AS
SELECT rank, t, v, o, digits, computed, stored_at, -1 AS ord FROM stored_points
UNION ALL
SELECT rank, t, v, o, CASE WHEN extra IS NOT NULL THEN json_extract_string(extra, '$.v') END, computed, {{observed}}, ord FROM new_points
