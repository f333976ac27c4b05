-- pit_long: every row of a relation with asset and ts, once for each metric of a list, with the newest point knowable at ts.
-- columns: those of the caller, then metric, t, available_at, v, o, age.
-- law: L1. As pit_join. All points are read once; only those of the starts that decisions expect and of the three before
--   are kept. A bit for each metric that answered tells what is left for the tail. Metrics whose first arrivals lie close
--   together share an expected start: any lag that is not above the true one is exact.
CREATE OR REPLACE MACRO pit_long(decisions, metrics, "interval", currency := NULL, exchange := NULL, network := NULL,
  component := NULL, max_age := NULL, latency := NULL, skip_nulls := false, unresolved := 'value', vintage := 'last',
  follow_renames := false) AS TABLE (
WITH {{part newest_points}},
_pit_aged AS NOT MATERIALIZED (
  SELECT a.* EXCLUDE (_pit_mi), names.name AS _pit_name, epoch_us(a._pit_k) + {{micros latency}} - {{end a._pit_t "interval"}} AS _pit_age
  FROM _pit_all AS a JOIN _pit_names AS names ON names.mi = a._pit_mi
)
SELECT * EXCLUDE (_pit_k, _pit_name, _pit_t, _pit_a, _pit_v, _pit_o, _pit_age), _pit_name AS metric,
  CASE WHEN {{fresh}} THEN _pit_t END AS t, CASE WHEN {{fresh}} THEN _pit_a END AS available_at,
  CASE WHEN {{fresh}} THEN _pit_v END AS v, CASE WHEN {{fresh}} THEN _pit_o END AS o,
  CASE WHEN {{fresh}} THEN to_microseconds(_pit_age) END AS age
FROM _pit_aged
), (decisions, metrics, "interval", back, currency := NULL, exchange := NULL, network := NULL,
  component := NULL, max_age := NULL, latency := NULL, skip_nulls := false, unresolved := 'value', vintage := 'last',
  follow_renames := false) AS TABLE (
WITH {{part newest_points}},
_pit_now AS MATERIALIZED (SELECT row_number() OVER () AS _pit_j, a.* FROM _pit_all AS a),
_pit_newest AS (SELECT _pit_j, _pit_mi AS mi, asset, _pit_k, _pit_t AS t, _pit_o AS o FROM _pit_now),
{{earlier macro mi asset}},
_pit_aged AS NOT MATERIALIZED (
  SELECT n.* EXCLUDE (_pit_j, _pit_mi, _pit_t, _pit_a, _pit_v, _pit_o), names.name AS _pit_name,
    p.t AS _pit_t, p.available_at AS _pit_a, p.v AS _pit_v, p.o AS _pit_o,
    epoch_us(n._pit_k) + {{micros latency}} - p._pit_end AS _pit_age, p._pit_shift
  FROM _pit_now AS n JOIN _pit_names AS names ON names.mi = n._pit_mi LEFT JOIN _pit_then AS p ON p._pit_j = n._pit_j
)
SELECT * EXCLUDE (_pit_k, _pit_name, _pit_t, _pit_a, _pit_v, _pit_o, _pit_age, _pit_shift), _pit_name AS metric,
  CASE WHEN {{fresh _pit_shift}} THEN _pit_t END AS t, CASE WHEN {{fresh _pit_shift}} THEN _pit_a END AS available_at,
  CASE WHEN {{fresh _pit_shift}} THEN _pit_v END AS v, CASE WHEN {{fresh _pit_shift}} THEN _pit_o END AS o,
  CASE WHEN {{fresh _pit_shift}} THEN to_microseconds(_pit_age) END AS age
FROM _pit_aged);
COMMENT ON MACRO TABLE pit_long IS 'pit_long(decisions, metrics, interval): as pit_join for a list of metrics, a row for each row and metric, with a column metric. A name may end in #/pointer. Options: currency, exchange, network, component, max_age, latency, back, skip_nulls, unresolved, vintage, follow_renames.';
