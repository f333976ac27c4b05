-- How many rows of the view `dated` get different dates.
-- columns: rows.
-- law: L4. If it is none, no file is rewritten.
SELECT count(*) AS rows FROM dated
WHERE new_at IS DISTINCT FROM available_at OR new_basis IS DISTINCT FROM basis
  OR coalesce(new_rule_at, new_at) IS DISTINCT FROM {{available_by_rule}}
