-- How far the rows of a series are apart at least.
-- columns: least (seconds).
-- law: none; it is for whoever names no interval. The rows are sorted.
SELECT min(mark - before) FILTER (WHERE within AND mark > before) AS least
FROM (SELECT mark, lag(mark) OVER () AS before, {{within}} AS within FROM own_rows)
