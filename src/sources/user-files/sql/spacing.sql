-- How many rows there are, how far those of a series are apart at least, and whether any two are of one instant.
-- columns: rows, least (seconds), doubled.
-- law: L7. The rows are sorted: one that tells a point again follows the other.
SELECT count(*) AS rows, min(mark - before) FILTER (WHERE within AND mark > before) AS least,
  coalesce(bool_or(within AND mark = before), false) AS doubled
FROM (SELECT mark, lag(mark) OVER () AS before, {{within}} AS within FROM own_rows)
