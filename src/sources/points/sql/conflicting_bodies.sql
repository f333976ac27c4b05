-- conflicting_bodies: one row per body that has two different values for one t: the first such t.
-- from: staged_points.
-- columns: body, t (the first one).
-- law: L7. The same point twice is one point; two values for one t are neither.
SELECT body, min(t) AS t
FROM (
  SELECT body, min(t) AS t
  FROM staged_points WHERE body IN ({{bodies}})
  GROUP BY body, {{once}}
  HAVING count(DISTINCT coalesce(CAST(v AS VARCHAR), 'null')) > 1 OR count(DISTINCT coalesce(computed, -1)) > 1
    OR count(DISTINCT canonical_json(coalesce(o, 'null'))) > 1 OR count(DISTINCT canonical_json(coalesce(extra, 'null'))) > 1
)
GROUP BY body
