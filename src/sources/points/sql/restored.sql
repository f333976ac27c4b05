-- restored: what is staged, with the values that violations have on record of lost points in the place of those offered.
-- columns: those of staged.
-- law: L2. A stored value that was lost with its file is the stored one still; one that vanished upstream is, too.
CREATE TEMP VIEW restored AS
SELECT s.body, s.t, CASE WHEN r.valued THEN r.v ELSE s.v END AS v, CASE WHEN r.valued THEN r.o ELSE s.o END AS o, s.extra,
  coalesce(r.computed, s.computed) AS computed
FROM staged s LEFT JOIN recorded r USING (body, t)
UNION ALL
SELECT body, t, v, o, CAST(NULL AS VARCHAR), computed FROM recorded ANTI JOIN staged USING (body, t) WHERE valued
