-- typed_points_load: fills typed_points with the points of some bodies that contain objects or arrays.
-- from: spool files.
-- columns: as in typed_points.
-- law: L7. No rounding: a t with a fraction or off the grid is not valid. Texts, booleans, further keys do not occur here; a key
--   that a point has twice makes the reading fail.
INSERT INTO typed_points
SELECT body, CASE WHEN sent = floor(sent) AND abs(sent) < 1e11 AND {{on_grid}} AND (v IS NULL OR abs(v) < {{beyond_double}})
    AND (computed_at IS NULL OR (computed_at >= 0 AND computed_at < 1e11)) THEN {{start}} END,
  v, TRY_CAST(round(computed_at * 1e6) AS BIGINT), o
FROM (
  SELECT *, {{interval}} AS "interval"
  FROM (
    SELECT {{body}} AS body, t AS sent, TRY_CAST(t AS BIGINT) AS mark, {{v}} AS v, {{o}} AS o, computed_at
    FROM read_json({{files}}, format = 'array', hive_partitioning = false, compression = 'uncompressed',
      columns = {t: 'DOUBLE', {{columns}}, computed_at: 'DOUBLE'})
  )
)
