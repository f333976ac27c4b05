-- What points come to, by series and month of t, and what each commit brought to it (docs/proof.md tells the lines).
-- columns: metric, interval, those of the series, months (each as `2024-06`, the commit's instant in milliseconds, points,
--   the sum of their hashes, and SHA-256 of the lines of its rows, between spaces; by month and commit, by comma): one row
--   a series, for to hand over a row costs more than to add one up.
-- law: L2. Independent of the spread of points over files. In lines clocks stand as they are published.
SELECT metric, "interval", {{identity}},
  string_agg(printf('%04d-%02d ', month // 12, month % 12 + 1) || concat_ws(' ', seen, points, digest, step), ','
    ORDER BY month, seen) AS months
FROM (
  SELECT metric, "interval", {{identity}}, month, seen, count(*) AS points, sum(hashed) AS digest,
    sha256(string_agg(line, chr(10) ORDER BY ut, line)) AS step
  FROM (
    SELECT metric, "interval", {{identity}}, year(make_timestamp(ut)) * 12 + month(make_timestamp(ut)) - 1 AS month,
      (uo + 999) // 1000 AS seen, ut, {{hash}} AS hashed,
      concat_ws(' ', (ut + 999) // 1000, CASE WHEN o IS NOT NULL THEN 'o' || sha256(o) ELSE coalesce('v' || vt, '-') END,
        (ua + 999) // 1000, basis,
        CASE WHEN basis <> 'provider' OR (uc + 999) // 1000 <> (ua + 999) // 1000 THEN 'c' || ((uc + 999) // 1000) END,
        CASE WHEN (ur + 999) // 1000 <> (ua + 999) // 1000 THEN 'r' || ((ur + 999) // 1000) END,
        'x' || sha256(extra)) AS line
    FROM (
      SELECT metric, "interval", {{identity}}, o, extra, basis, CAST(v AS VARCHAR) AS vt, epoch_us(t) AS ut,
        epoch_us(available_at) AS ua, epoch_us(observed_at) AS uo, epoch_us(computed_at) AS uc,
        epoch_us(available_rule_at) AS ur
      FROM {{source}}
    )
  )
  GROUP BY ALL
)
GROUP BY metric, "interval", {{identity}}
ORDER BY ALL
