-- staged: the points of all bodies that can be used.
-- columns: body, t (start of the interval, seconds), v, o, extra, computed (microseconds).
-- law: L7.
CREATE TEMP VIEW staged AS
SELECT body, t, v, o, extra, computed FROM typed_points
UNION ALL
SELECT body, t, v, o, extra, computed FROM by_value
