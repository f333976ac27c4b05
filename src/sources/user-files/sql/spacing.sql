-- The number of rows, the smallest distance between two rows of a series, and whether two rows have the same t.
-- columns: rows, least (seconds), doubled.
-- law: L7. The rows are sorted, so a repeated row follows the row that it repeats.
SELECT count(*) AS rows, min(mark - previous_mark) FILTER (WHERE same_series AND mark > previous_mark) AS least,
  coalesce(bool_or(same_series AND mark = previous_mark), false) AS doubled
FROM (SELECT mark, lag(mark) OVER () AS previous_mark, {{within}} AS same_series FROM user_rows)
