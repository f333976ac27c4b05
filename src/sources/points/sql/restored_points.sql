-- restored_points: one row per staged point; the value that a violation has on record of a lost point stands in the place of the offered one.
-- from: staged_points, recorded_values.
-- columns: those of staged_points.
-- law: L2. A stored value that was lost with its file is the stored one still; one that vanished upstream is, too.
CREATE TEMP VIEW restored_points AS
SELECT s.body, s.t, CASE WHEN r.valued THEN r.v ELSE s.v END AS v, CASE WHEN r.valued THEN r.o ELSE s.o END AS o, s.extra,
  coalesce(r.computed, s.computed) AS computed
FROM staged_points s LEFT JOIN recorded_values r USING (body, t)
UNION ALL
SELECT body, t, v, o, CAST(NULL AS VARCHAR), computed FROM recorded_values ANTI JOIN staged_points USING (body, t) WHERE valued
