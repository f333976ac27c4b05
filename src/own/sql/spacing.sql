-- How far the rows of a series are apart.
-- columns: least and most (seconds), months (whether all begin a month), firsts (how many lie at the smallest distance).
-- law: none; it is for whoever names no interval.
SELECT min(apart) AS least, max(apart) AS most, bool_and(monthly) AS months
FROM (
  SELECT mark - lag(mark) OVER (PARTITION BY {{keys}} ORDER BY mark) AS apart,
    make_timestamp(mark * 1000000) = date_trunc('month', make_timestamp(mark * 1000000)) AS monthly
  FROM own_rows
) WHERE apart IS NULL OR apart > 0
