-- What points come to, by series and month of t.
-- columns: metric, interval, those of the series, month (`2024-06`), points, digest (the sum of their hashes).
-- law: L2. Independent of the order of rows and of their spread over files.
SELECT metric, "interval", {{identity}}, {{month}} AS month, count(*) AS points, CAST(sum({{hash}}) AS VARCHAR) AS digest
FROM {{source}}
GROUP BY ALL
ORDER BY ALL
