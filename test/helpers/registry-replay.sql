-- The versions that follow from what polls observed, by window functions alone: a twin of src/sources/registry/history.ts.
-- seen: poll, pos, kind (event, state), resource, id, hash (NULL: gone), product. states: poll, pos, resource.
WITH known AS (
  SELECT resource, id, max(product) AS product FROM seen WHERE hash IS NOT NULL GROUP BY ALL
), told AS (
  SELECT poll, CAST(pos AS DOUBLE) AS pos, resource, id, hash, kind = 'event' AS is_event FROM seen
  UNION ALL
  SELECT s.poll, s.pos, k.resource, k.id, NULL, false FROM states AS s JOIN known AS k USING (resource)
  ANTI JOIN (SELECT poll, pos, id, resource FROM seen WHERE kind = 'state') AS x
    ON x.poll = s.poll AND x.pos = s.pos AND x.resource = k.resource AND x.id = k.id
  UNION ALL
  SELECT e.poll, e.pos + 0.5, k.resource, k.id, NULL, false
  FROM seen AS e JOIN known AS k ON k.resource = 'deployments' AND k.product = e.id
  WHERE e.kind = 'event' AND e.resource = 'products' AND e.hash IS NULL
), last_word AS (
  SELECT resource, id, poll, max_by({hash: hash}, pos).hash AS hash FROM told GROUP BY ALL
), changed AS (
  SELECT * FROM last_word WINDOW per_id AS (PARTITION BY resource, id ORDER BY poll)
  QUALIFY lag(hash) OVER per_id IS DISTINCT FROM hash
)
SELECT resource, id, poll AS valid_from, lead(poll) OVER per_id AS valid_to, hash FROM changed
WINDOW per_id AS (PARTITION BY resource, id ORDER BY poll)
QUALIFY hash IS NOT NULL
ORDER BY ALL
