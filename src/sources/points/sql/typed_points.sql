-- typed_points: one row per point of a body whose keys and kinds of values a strict reading has established.
-- from: filled from the columns of that reading, and by typed_points_load.sql.
-- columns: body, t (start of the interval, seconds; NULL: the point is not valid as it is), v, computed (microseconds),
--   o if any body of the batch has objects or arrays.
-- law: L7.
CREATE TEMP TABLE typed_points (body INTEGER, t BIGINT, v DOUBLE, computed BIGINT{{nested}})
