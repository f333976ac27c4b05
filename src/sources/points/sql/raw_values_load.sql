-- raw_values_load: fills raw_values with the points of some bodies.
-- from: spool files.
-- columns: as in raw_values.
-- law: L7. A key that a point has twice is told (doubled), never resolved.
INSERT INTO raw_values
SELECT {{body}}, m['t'], m['v'], m['o'], m['computed_at'], has_t, has_v, has_o,
  CASE WHEN keys > known THEN list_filter(map_entries(m), lambda e: e.key NOT IN ('t', 'v', 'o', 'computed_at')) END,
  CASE WHEN keys > known THEN len(list_distinct(map_keys(m))) < keys ELSE false END
FROM (
  SELECT file_index, m, cardinality(m) AS keys, map_contains(m, 't') AS has_t, map_contains(m, 'v') AS has_v,
    map_contains(m, 'o') AS has_o, has_t::INTEGER + has_v::INTEGER + has_o::INTEGER + map_contains(m, 'computed_at')::INTEGER AS known
  FROM read_json({{files}}, format = 'array', hive_partitioning = false, records = false, compression = 'uncompressed',
    columns = {m: 'MAP(VARCHAR, JSON)'})
)
