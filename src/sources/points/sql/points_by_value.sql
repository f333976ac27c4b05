-- points_by_value: one row per point that was read value by value, in the lake's terms, with its first fault.
-- from: filled by points_by_value_load.sql.
-- columns: body, t (start of the interval, seconds), v, o, extra, computed (microseconds), fault,
--   place (in the order of reading).
-- law: L7.
CREATE TEMP TABLE points_by_value (
  body INTEGER, t BIGINT, v DOUBLE, o VARCHAR, extra VARCHAR, computed BIGINT, fault VARCHAR, place BIGINT
)
