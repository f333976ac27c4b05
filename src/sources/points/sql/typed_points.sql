-- typed_points: one row per typed value, as a point in the lake's terms.
-- from: typed_values, bodies.
-- columns: body, t (start of the interval, seconds), v, o, extra, computed (microseconds), sound (nothing to complain).
-- law: L7. No rounding: a t with a fraction or off the grid is not sound.
CREATE TEMP VIEW typed_points AS
SELECT body, {{start}} AS t, v, o, CAST(NULL AS VARCHAR) AS extra, TRY_CAST(round(computed_at * 1e6) AS BIGINT) AS computed,
  coalesce(sent = floor(sent) AND abs(sent) < 1e11 AND {{on_grid}} AND (v IS NULL OR abs(v) < {{beyond_double}})
    AND (computed_at IS NULL OR (computed_at >= 0 AND computed_at < 1e11)), false) AS sound
FROM (SELECT * EXCLUDE (t), t AS sent, TRY_CAST(t AS BIGINT) AS mark FROM typed_values)
JOIN (SELECT body, "interval" FROM bodies) USING (body)
