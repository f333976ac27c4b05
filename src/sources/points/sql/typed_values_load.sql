-- typed_values_load: fills typed_values with the points of some bodies.
-- from: spool files.
-- columns: body, t and computed_at (seconds as sent), v, o (JSON text).
-- law: L7. Texts, booleans, further keys do not occur here; a key that a point has twice makes the reading fail.
INSERT INTO typed_values
SELECT {{body}}, t, {{v}}, {{o}}, computed_at
FROM read_json({{files}}, format = 'array', hive_partitioning = false, compression = 'uncompressed', columns = {t: 'DOUBLE', {{columns}}, computed_at: 'DOUBLE'})
