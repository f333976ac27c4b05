-- The points of bodies that seem to hold one kind of value, read with declared types, in the lake's terms.
-- columns: body, t (start of the interval, seconds), v, o, extra, computed (microseconds).
-- A buffer of DuckDB's holds two objects of the largest size, a thread: a point of a megabyte is left to the other way.
-- law: L7. What is unsound stops the statement; what such a reading converts in silence is proved absent afterwards.
SELECT body, CASE WHEN sent = floor(sent) AND abs(sent) < 1e11 AND {{on_grid}} THEN {{start}} ELSE error('t') END AS t,
  {{v}} AS v, {{o}} AS o, CAST(NULL AS VARCHAR) AS extra, {{computed}} AS computed
FROM (
  SELECT {{body}} AS body, t AS sent, TRY_CAST(t AS BIGINT) AS mark, * EXCLUDE (t)
  FROM read_json({{files}}, format = 'array', hive_partitioning = false, compression = 'uncompressed', maximum_object_size = 1048576, columns = {{columns}})
)
