-- typed_values: one row per point of a body whose keys and kinds of values a strict reading of the tokens has established.
-- from: filled by typed_values_load.sql.
-- columns: body, t, v, o, computed_at.
-- law: L7.
CREATE TEMP TABLE typed_values (body INTEGER, t DOUBLE, v DOUBLE, o VARCHAR, computed_at DOUBLE)
