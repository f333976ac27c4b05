-- raw_values: one row per point of a body that is read value by value, each value as JSON text.
-- from: filled by raw_values_load.sql.
-- columns: body, t, v, o, c (computed_at), has_* (whether the key is there), others (the further keys), doubled.
-- law: L7. Nothing is converted here; NULL where the key is missing or its value is null.
CREATE TEMP TABLE raw_values (
  body INTEGER, t VARCHAR, v VARCHAR, o VARCHAR, c VARCHAR, has_t BOOLEAN, has_v BOOLEAN, has_o BOOLEAN,
  others STRUCT("key" VARCHAR, "value" VARCHAR)[], doubled BOOLEAN
)
