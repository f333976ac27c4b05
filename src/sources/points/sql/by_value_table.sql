-- by_value: the points that were read value by value, in the lake's terms, with the first fault of each.
-- columns: body, t (start of the interval, seconds), v, o, extra, computed (microseconds), sound, fault,
--   place (in the order of reading).
-- law: L7.
CREATE TEMP TABLE by_value (
  body INTEGER, t BIGINT, v DOUBLE, o VARCHAR, extra VARCHAR, computed BIGINT, sound BOOLEAN, fault VARCHAR, place BIGINT
)
