-- Points as the digests of their months take them, a row each: a stream that nothing is counted in.
-- columns: who (a hash of the series), t, available and seen (microseconds), v (NaN: no number), form (8 times the bytes of
--   rest, and the number of the basis), rest (what else there is of a point), metric, interval, those of the series.
-- law: L2. Independent of the spread of points over files; in rest clocks stand as they are published (docs/proof.md).
SELECT hash(metric, "interval", {{identity}}) AS who, t, available, seen, coalesce(v, 'nan'::DOUBLE) AS v,
  CAST(8 * coalesce(strlen(rest), 0) + CASE basis WHEN 'provider' THEN 0 WHEN 'observed' THEN 1 WHEN 'stated' THEN 2
    WHEN 'assumed' THEN 3 ELSE 4 END AS DOUBLE) AS form, rest, metric, "interval", {{identity}}
FROM (
  SELECT metric, "interval", {{identity}}, v, basis, CAST(epoch_us(t) AS DOUBLE) AS t,
    CAST(epoch_us(available_at) AS DOUBLE) AS available, CAST(epoch_us(observed_at) AS DOUBLE) AS seen,
    CASE WHEN o IS NOT NULL OR extra IS NOT NULL OR computed_at IS NOT NULL OR available_rule_at IS NOT NULL THEN
      nullif(concat_ws(' ', CASE WHEN basis <> 'provider' OR {{computed}} <> {{known}} THEN 'c' || {{computed}} END,
        CASE WHEN {{ruled}} <> {{known}} THEN 'r' || {{ruled}} END,
        'o' || strlen(o) || ' ' || o, 'x' || strlen(extra) || ' ' || extra), '') END AS rest
  FROM {{source}}
)
{{order}}
