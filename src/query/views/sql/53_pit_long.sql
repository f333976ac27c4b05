-- pit_long: every row of a relation with asset and ts, once for each metric of a list, with the newest point knowable
--   at ts.
-- columns: those of the caller, then metric, t, available_at, v, o, age.
-- law: L1. Points are chosen as in pit_join (parts/newest_points.sql).
CREATE OR REPLACE MACRO pit_long(decisions, metrics, "interval", currency := NULL, exchange := NULL, network := NULL,
  component := NULL, max_age := NULL, latency := NULL, skip_nulls := false, unresolved := 'value', vintage := 'last',
  follow_renames := false) AS TABLE (
WITH {{part newest_points}},
_pit_aged AS NOT MATERIALIZED (
  SELECT a.* EXCLUDE (_pit_metric_number), names.name AS _pit_metric_name,
    epoch_us(a._pit_known_by) + {{micros latency}} - {{end a._pit_point_t "interval"}} AS _pit_age
  FROM _pit_all AS a JOIN _pit_names AS names ON names.mi = a._pit_metric_number
)
SELECT * EXCLUDE (_pit_known_by, _pit_metric_name, _pit_point_t, _pit_point_available_at, _pit_point_v, _pit_point_o, _pit_age),
  _pit_metric_name AS metric,
  CASE WHEN {{fresh}} THEN _pit_point_t END AS t,
  CASE WHEN {{fresh}} THEN _pit_point_available_at END AS available_at,
  CASE WHEN {{fresh}} THEN _pit_point_v END AS v,
  CASE WHEN {{fresh}} THEN _pit_point_o END AS o,
  CASE WHEN {{fresh}} THEN to_microseconds(_pit_age) END AS age
FROM _pit_aged
), (decisions, metrics, "interval", back, currency := NULL, exchange := NULL, network := NULL,
  component := NULL, max_age := NULL, latency := NULL, skip_nulls := false, unresolved := 'value', vintage := 'last',
  follow_renames := false) AS TABLE (
WITH {{part newest_points}},
_pit_newest_rows AS MATERIALIZED (SELECT row_number() OVER () AS _pit_answer_id, a.* FROM _pit_all AS a),
_pit_newest AS (SELECT _pit_answer_id,
  _pit_metric_number AS mi, asset, _pit_known_by, _pit_point_t AS t, _pit_point_o AS o
  FROM _pit_newest_rows),
{{earlier macro mi asset}},
_pit_aged AS NOT MATERIALIZED (
  SELECT n.* EXCLUDE (_pit_answer_id, _pit_metric_number, _pit_point_t, _pit_point_available_at, _pit_point_v, _pit_point_o),
    names.name AS _pit_metric_name,
    p.t AS _pit_point_t, p.available_at AS _pit_point_available_at, p.v AS _pit_point_v, p.o AS _pit_point_o,
    epoch_us(n._pit_known_by) + {{micros latency}} - p._pit_end AS _pit_age, p._pit_shift
  FROM _pit_newest_rows AS n
  JOIN _pit_names AS names ON names.mi = n._pit_metric_number
  LEFT JOIN _pit_earlier_points AS p ON p._pit_answer_id = n._pit_answer_id
)
SELECT * EXCLUDE (_pit_known_by, _pit_metric_name, _pit_point_t, _pit_point_available_at, _pit_point_v, _pit_point_o,
    _pit_age, _pit_shift),
  _pit_metric_name AS metric,
  CASE WHEN {{fresh _pit_shift}} THEN _pit_point_t END AS t,
  CASE WHEN {{fresh _pit_shift}} THEN _pit_point_available_at END AS available_at,
  CASE WHEN {{fresh _pit_shift}} THEN _pit_point_v END AS v,
  CASE WHEN {{fresh _pit_shift}} THEN _pit_point_o END AS o,
  CASE WHEN {{fresh _pit_shift}} THEN to_microseconds(_pit_age) END AS age
FROM _pit_aged);
COMMENT ON MACRO TABLE pit_long IS 'pit_long(decisions, metrics, interval): as pit_join for a list of metrics, a row for each row and metric, with a column metric. A name may end in #/pointer. Options: currency, exchange, network, component, max_age, latency, back, skip_nulls, unresolved, vintage, follow_renames.';
