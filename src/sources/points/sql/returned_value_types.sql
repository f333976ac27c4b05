-- returned_value_types: one row per type that came back at a place behind a different type: since when, by either clock.
-- from: points, and pairs of types at one place.
-- columns: metric, path, parent, type, after (that other type), available and ruled (the first, microseconds).
-- law: L1.
SELECT again.metric, again.path, again.parent, again.type, again.after,
  min(available) FILTER (available > since) AS available, min(ruled) FILTER (ruled > ruled_since) AS ruled
FROM ({{again}}) AS again
JOIN (
  SELECT metric, '$' AS path, 'number' AS type, available, ruled FROM ({{shown}}) WHERE v IS NOT NULL
  UNION ALL
  SELECT metric, {{path}}, {{type}}, available, ruled
  FROM (
    SELECT metric, available, ruled, node.fullkey AS place, node.type
    FROM ({{shown}}), json_tree(o) AS node WHERE o IS NOT NULL
  )
) AS places USING (metric, path, type)
GROUP BY again.metric, again.path, again.parent, again.type, again.after
ORDER BY ALL
