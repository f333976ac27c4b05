-- typed: the points of bodies whose keys and kinds of values a strict reading of the tokens has established.
-- columns: body, t and computed_at (seconds as sent), v, o (JSON text).
-- law: L7. Texts, booleans, further keys do not occur here; a key that a point has twice makes the reading fail.
INSERT INTO typed
SELECT {{body}}, t, {{v}}, {{o}}, computed_at
FROM read_json({{files}}, format = 'array', hive_partitioning = false, compression = 'uncompressed', columns = {t: 'DOUBLE', {{columns}}, computed_at: 'DOUBLE'})
