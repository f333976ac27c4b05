-- staged_points: one row per point of every body that can be used.
-- from: typed_points, points_by_value.
-- columns: body, t (start of the interval, seconds), v, o, extra, computed (microseconds).
-- law: L7.
CREATE TEMP VIEW staged_points AS
SELECT body, t, v, {{nested}} AS o, CAST(NULL AS VARCHAR) AS extra, computed FROM typed_points
UNION ALL
SELECT body, t, v, o, extra, computed FROM points_by_value
