-- How far the rows of a series are apart at least.
-- columns: least (seconds), months (whether all begin a month).
-- law: none; it is for whoever names no interval. The rows are sorted.
SELECT min(mark - before) FILTER (WHERE within AND mark > before) AS least,
  bool_and(make_timestamp(mark * 1000000) = date_trunc('month', make_timestamp(mark * 1000000))) AS months
FROM (SELECT mark, lag(mark) OVER () AS before, {{within}} AS within FROM own_rows)
