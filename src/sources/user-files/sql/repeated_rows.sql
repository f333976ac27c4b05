-- Rows that tell a point again.
-- columns: again (how many, of all), differs (whether two say different things of one), the keys of the first such point.
-- law: L7. The same point twice is one point; two values for one t are neither.
SELECT sum(often - 1) OVER () AS again, * EXCLUDE (often) FROM (
  SELECT {{once}}, count(*) AS often, {{differs}} AS differs FROM own_rows GROUP BY ALL HAVING count(*) > 1
) ORDER BY differs DESC, mark LIMIT 1
