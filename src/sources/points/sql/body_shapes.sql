-- body_shapes: one row per body that is read value by value: where it keeps its values.
-- from: raw_values.
-- columns: body, valued (in v or o), lone (the one other key that holds them all, as objects or arrays, or NULL).
-- A null v beside points of other keys is a null point of that shape.
-- law: L7. Decided for each response, not for each endpoint.
CREATE TEMP VIEW body_shapes AS
WITH entries AS (SELECT body, unnest(others) AS e FROM raw_values WHERE others IS NOT NULL)
SELECT body, valued, lone
FROM (
  SELECT body, bool_or(v IS NOT NULL OR o IS NOT NULL) OR (bool_or(has_v OR has_o) AND NOT bool_or(others IS NOT NULL)) AS valued
  FROM raw_values GROUP BY body
)
LEFT JOIN (
  SELECT body, CASE WHEN count(DISTINCT e.key) = 1 AND count(e.value) > 0
    AND bool_and(coalesce(left(e.value, 1) IN ('{', '['), true)) THEN min(e.key) END AS lone
  FROM entries GROUP BY body
) USING (body)
