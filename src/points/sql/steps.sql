-- What came of each month of t of each series with each commit, as one digest of its rows (docs/proof.md says how).
-- columns: metric, interval, those of the series, steps (each as `2024-06`, the commit's instant in milliseconds, rows and
--   SHA-256 of the lines of its rows, between spaces; one after the other by comma): one row a series.
-- law: L2. Clocks enter as they are published, so that a stranger with the published tables finds the same; independent of
--   the spread of rows over files.
SELECT metric, "interval", {{identity}},
  string_agg(concat_ws(' ', month, seen, points, digest), ',' ORDER BY month, seen) AS steps
FROM (
  SELECT metric, "interval", {{identity}}, month, seen, count(*) AS points,
    sha256(string_agg(line, chr(10) ORDER BY {{order}})) AS digest
  FROM (
    SELECT metric, "interval", {{identity}}, t, strftime(make_timestamp(epoch_us(t)), '%Y-%m') AS month,
      (epoch_us(observed_at) + 999) // 1000 AS seen,
      concat_ws(' ', (epoch_us(t) + 999) // 1000,
        CASE WHEN o IS NOT NULL THEN 'o' || sha256(o) WHEN v IS NOT NULL THEN 'v' || CAST(v AS VARCHAR) ELSE '-' END,
        (epoch_us(available_at) + 999) // 1000, basis,
        CASE WHEN basis <> 'provider' OR (epoch_us(computed_at) + 999) // 1000 <> (epoch_us(available_at) + 999) // 1000
          THEN 'c' || ((epoch_us(computed_at) + 999) // 1000) END,
        CASE WHEN (epoch_us(available_rule_at) + 999) // 1000 <> (epoch_us(available_at) + 999) // 1000
          THEN 'r' || ((epoch_us(available_rule_at) + 999) // 1000) END,
        'x' || sha256(extra)) AS line
    FROM {{source}}
  )
  GROUP BY ALL
)
GROUP BY metric, "interval", {{identity}}
ORDER BY ALL
