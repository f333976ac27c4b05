-- Points as the digests of their months take them, a row each: a stream that nothing is counted in.
-- columns: who (a hash of the series), t, available and seen (microseconds), v (NaN: no number), form (8 times the bytes of
--   rest, and the number of the basis), rest (what else there is of a point), metric, interval, those of the series.
-- law: L2. Independent of the spread of points over files; in rest clocks stand as they are published (docs/proof.md).
SELECT hash(metric, "interval", {{identity}}) AS who, CAST(ut AS DOUBLE) AS t, CAST(ua AS DOUBLE) AS available,
  CAST(uo AS DOUBLE) AS seen, coalesce(v, 'nan'::DOUBLE) AS v, CAST(8 * coalesce(strlen(rest), 0) + CASE basis
    WHEN 'provider' THEN 0 WHEN 'observed' THEN 1 WHEN 'stated' THEN 2 WHEN 'assumed' THEN 3 ELSE 4 END AS DOUBLE) AS form,
  rest, metric, "interval", {{identity}}
FROM (
  SELECT *, CASE WHEN o IS NOT NULL OR extra IS NOT NULL OR uc IS NOT NULL OR ur IS NOT NULL THEN nullif(concat_ws(' ',
    CASE WHEN basis <> 'provider' OR (uc + 999) // 1000 <> (ua + 999) // 1000 THEN 'c' || ((uc + 999) // 1000) END,
    CASE WHEN (ur + 999) // 1000 <> (ua + 999) // 1000 THEN 'r' || ((ur + 999) // 1000) END,
    'o' || strlen(o) || ' ' || o, 'x' || strlen(extra) || ' ' || extra), '') END AS rest
  FROM (
    SELECT metric, "interval", {{identity}}, v, o, extra, basis, epoch_us(t) AS ut, epoch_us(available_at) AS ua,
      epoch_us(observed_at) AS uo, epoch_us(computed_at) AS uc, epoch_us(available_rule_at) AS ur
    FROM {{source}}
  )
)
{{order}}
