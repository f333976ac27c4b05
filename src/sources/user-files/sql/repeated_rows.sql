-- The first point that several rows give, and the number of all repeated rows.
-- columns: repeated (how many rows repeat an earlier one), differs (whether two rows give different values for the
--   point), the keys of the point.
-- law: L7. The same point twice is one point. Two values for one t are an error.
SELECT sum(copies - 1) OVER () AS repeated, * EXCLUDE (copies) FROM (
  SELECT {{point_keys}}, count(*) AS copies, {{differs}} AS differs FROM user_rows GROUP BY ALL HAVING count(*) > 1
) ORDER BY differs DESC, mark LIMIT 1
