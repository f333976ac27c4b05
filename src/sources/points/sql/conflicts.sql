-- Bodies that contradict themselves: one t with two values.
-- columns: body, t (the first one).
-- law: L7. The same point twice is one point; two values for one t are neither.
SELECT body, min(t) AS t
FROM (
  SELECT body, min(t) AS t
  FROM staged WHERE body IN ({{bodies}})
  GROUP BY body, {{once}}
  HAVING count(DISTINCT coalesce(CAST(v AS VARCHAR), 'null')) > 1 OR count(DISTINCT coalesce(computed, -1)) > 1
    OR count(DISTINCT canonical(coalesce(o, 'null'))) > 1 OR count(DISTINCT canonical(coalesce(extra, 'null'))) > 1
)
GROUP BY body
