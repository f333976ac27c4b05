-- What points come to, by series and month of t.
-- columns: metric, interval, those of the series, months (each as `2024-06`, points and the sum of their hashes, between
--   spaces, the months by comma): one row a series, for to hand over a row costs more than to add one up.
-- law: L2. Independent of the order of rows and of their spread over files.
SELECT metric, "interval", {{identity}}, string_agg(month || ' ' || points || ' ' || digest, ',' ORDER BY month) AS months
FROM (
  SELECT metric, "interval", {{identity}}, {{month}} AS month, count(*) AS points, sum({{hash}}) AS digest
  FROM {{source}}
  GROUP BY ALL
)
GROUP BY metric, "interval", {{identity}}
ORDER BY ALL
