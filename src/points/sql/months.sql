-- Points as the digests of their months take them, a row each: a stream that nothing is counted in.
-- columns: who (a hash of the series), t, available and seen, computed and ruled (NaN: none), all in microseconds, v (NaN: no
--   number), form (8 times the bytes of rest, and the number of the basis), rest (o and extra), metric, interval, those of
--   the series.
-- law: L2. Independent of the spread of points over files; Node writes the clocks of the text (docs/proof.md), cheaper.
SELECT hash(metric, "interval", {{identity}}) AS who, CAST(epoch_us(t) AS DOUBLE) AS t,
  CAST(epoch_us(available_at) AS DOUBLE) AS available, CAST(epoch_us(observed_at) AS DOUBLE) AS seen,
  coalesce(CAST(epoch_us(computed_at) AS DOUBLE), 'nan') AS computed,
  coalesce(CAST(epoch_us(available_rule_at) AS DOUBLE), 'nan') AS ruled, coalesce(v, 'nan') AS v,
  CAST(8 * coalesce(strlen(rest), 0) + CASE basis WHEN 'provider' THEN 0 WHEN 'observed' THEN 1 WHEN 'stated' THEN 2
    WHEN 'assumed' THEN 3 ELSE 4 END AS DOUBLE) AS form,
  rest, metric, "interval", {{identity}}
FROM (
  SELECT *, CASE WHEN o IS NOT NULL OR extra IS NOT NULL
    THEN concat_ws(' ', 'o' || strlen(o) || ' ' || o, 'x' || strlen(extra) || ' ' || extra) END AS rest
  FROM {{source}}
)
{{order}}
