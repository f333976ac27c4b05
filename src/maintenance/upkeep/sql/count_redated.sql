-- How many rows the view `dated` dates otherwise than they are.
-- columns: rows.
-- law: L4. Where it is none, nothing is rewritten.
SELECT count(*) AS rows FROM dated
WHERE new_at IS DISTINCT FROM available_at OR new_basis IS DISTINCT FROM basis
  OR coalesce(new_rule_at, new_at) IS DISTINCT FROM {{ruled}}
