-- typed: see typed.sql, which fills it.
-- columns: body, t, v, o, computed_at.
-- law: L7.
CREATE TEMP TABLE typed (body INTEGER, t DOUBLE, v DOUBLE, o VARCHAR, computed_at DOUBLE)
