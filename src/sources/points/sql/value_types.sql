-- value_types: one row per place and type: which types the values of some points have there, and since when.
-- from: points, as metric, v, o, available and ruled.
-- columns: metric, path and parent ($ is the value itself, [*] any place of a list; parent is NULL for the value itself),
--   type, available and ruled (the first, microseconds), latest and latest_ruled (the last of both).
-- law: L1. At most so many of a metric: objects whose keys are ids would teach for ever.
WITH shown AS NOT MATERIALIZED ({{shown}}),
-- One value stands for all of its form: taking each apart costs several times as much, and a gigabyte of
-- memory for 40,000 long lists.
-- A form hides places where a list is mixed ("JSON", also what an empty object is) or may hold null: such values stand for
-- themselves.
formed AS (
  SELECT *, regexp_replace(CAST(json_structure(o) AS VARCHAR), ':"(UBIGINT|BIGINT|HUGEINT|DOUBLE)"', ':"number"', 'g') AS form
  FROM shown WHERE o IS NOT NULL
),
alike AS (
  SELECT metric, any_value(o) AS o, min(available) AS available, min(ruled) AS ruled, max(available) AS latest,
    max(ruled) AS latest_ruled
  FROM formed
  GROUP BY metric, form,
    CASE WHEN contains(form, '"JSON"') OR contains(form, '[') AND contains(o, 'null') THEN o END
),
places AS (
  SELECT metric, '$' AS place, CAST(NULL AS VARCHAR) AS above, 'DOUBLE' AS type, min(available) AS available,
    min(ruled) AS ruled, max(available) AS latest, max(ruled) AS latest_ruled
  FROM shown WHERE v IS NOT NULL GROUP BY metric
  UNION ALL
  SELECT metric, node.fullkey, node.path, node.type, min(available), min(ruled), max(latest), max(latest_ruled)
  FROM alike, json_tree(o) AS node GROUP BY metric, node.fullkey, node.path, node.type
)
SELECT metric, path, parent, type, available, ruled, latest, latest_ruled
FROM (
  SELECT metric, {{path}} AS path, {{parent}} AS parent, {{type}} AS type, min(available) AS available,
    min(ruled) AS ruled, max(latest) AS latest, max(latest_ruled) AS latest_ruled
  FROM places
  GROUP BY ALL
)
QUALIFY row_number() OVER (PARTITION BY metric ORDER BY available, path, type) <= {{most}}
ORDER BY metric, path, type
