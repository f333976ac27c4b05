-- month_records: one row per point, as the sums of months take it: a stream in which nothing is counted.
-- from: a relation of points files with metric and interval.
-- columns: who (a hash of the series), t, available and seen (instants as they are stored), v (NaN: no number), form (8 times
--   the bytes of rest, and the number of the basis), rest (what else there is of a point), named (of the first of several
--   points of a series metric, interval and those of the series as a JSON list).
-- law: L2. Independent of the spread of points over files; in rest clocks stand as they are published, in milliseconds.
-- A stream of several threads comes in whatever order: what looks at the row before makes it one that keeps the order.
SELECT who, t, available_at AS available, observed_at AS seen, coalesce(v, 'nan'::DOUBLE) AS v,
  CAST(8 * coalesce(strlen(rest), 0) + CASE basis
    WHEN 'provider' THEN 0 WHEN 'observed' THEN 1 WHEN 'stated' THEN 2 WHEN 'assumed' THEN 3 ELSE 4 END AS DOUBLE) AS form,
  rest, CASE WHEN who IS DISTINCT FROM lag(who) OVER () THEN CAST(json_array(metric, "interval", {{identity}}) AS VARCHAR) END AS named
FROM (
  SELECT *, hash(metric, "interval", {{identity}}) AS who,
    CASE WHEN o IS NOT NULL OR extra IS NOT NULL OR computed_at IS NOT NULL OR available_rule_at IS NOT NULL THEN nullif(concat_ws(' ',
      CASE WHEN basis <> 'provider' OR {{computed_at}} <> {{available_at}} THEN 'c' || {{computed_at}} END,
      CASE WHEN {{available_rule_at}} <> {{available_at}} THEN 'r' || {{available_rule_at}} END,
      'o' || strlen(o) || ' ' || o, 'x' || strlen(extra) || ' ' || extra), '') END AS rest
  FROM {{source}}
  {{order}}
)
