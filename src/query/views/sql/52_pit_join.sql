-- pit_join: every row of a relation with asset and ts, with the newest point of a metric that was knowable at ts.
-- columns: those of the caller, then t, available_at, v, o, age.
-- law: L1. A point is knowable if available_at <= ts - latency. Of the knowable points the one with the largest t is
--   returned. Late points are handled exactly.
--   The expected start is looked up by hash. If that point was not known yet, the tail of the join decides
--   (src/query/views/joins.ts).
--   With back, the same knowledge is used: the answer is the newest point that ended that span before the end of the
--   newest one (joins-earlier.ts).
CREATE OR REPLACE MACRO pit_join(decisions, metric, "interval", currency := NULL, exchange := NULL, network := NULL,
  component := NULL, max_age := NULL, latency := NULL, skip_nulls := false, unresolved := 'value', vintage := 'last',
  follow_renames := false) AS TABLE (
WITH _pit_decisions AS NOT MATERIALIZED (
  SELECT u.*, CASE WHEN latency IS NULL THEN u._pit_utc ELSE {{before u._pit_utc}} END AS _pit_known_by
  FROM (SELECT yours.*, {{utc yours.ts}} AS _pit_utc FROM query_table(decisions) AS yours) AS u
)
SELECT * EXCLUDE (_pit_utc, _pit_point_t, _pit_point_available_at, _pit_point_v, _pit_point_o, _pit_age, _pit_fresh),
  CASE WHEN _pit_fresh THEN _pit_point_t END AS t, CASE WHEN _pit_fresh THEN _pit_point_available_at END AS available_at,
  CASE WHEN _pit_fresh THEN _pit_point_v END AS v, CASE WHEN _pit_fresh THEN _pit_point_o END AS o,
  CASE WHEN _pit_fresh THEN to_microseconds(_pit_age) END AS age
FROM (SELECT *, {{fresh}} AS _pit_fresh FROM {{text
{{part newest_point}}
SELECT * EXCLUDE (_pit_known_by, _pit_expected_t, t, available_at, v, o), t AS _pit_point_t,
  available_at AS _pit_point_available_at,
  v AS _pit_point_v, o AS _pit_point_o,
  epoch_us(_pit_utc) - {{its end}} AS _pit_age
FROM (
  SELECT * FROM _pit_hits WHERE available_at IS NOT NULL
  UNION ALL (SELECT m.* EXCLUDE (_pit_id), r.t, r.available_at, r.v, r.o
    FROM _pit_missed_rows AS m LEFT JOIN _pit_found_points AS r USING (_pit_id)
    ORDER BY m._pit_id)
)}})
), (decisions, metric, "interval", back, currency := NULL, exchange := NULL, network := NULL,
  component := NULL, max_age := NULL, latency := NULL, skip_nulls := false, unresolved := 'value', vintage := 'last',
  follow_renames := false) AS TABLE (
WITH _pit_decisions AS NOT MATERIALIZED (
  SELECT u.*, CASE WHEN latency IS NULL THEN u._pit_utc ELSE {{before u._pit_utc}} END AS _pit_known_by
  FROM (SELECT yours.*, {{utc yours.ts}} AS _pit_utc FROM query_table(decisions) AS yours) AS u
)
SELECT * EXCLUDE (_pit_utc, _pit_point_t, _pit_point_available_at, _pit_point_v, _pit_point_o, _pit_age,
    _pit_shift, _pit_fresh),
  CASE WHEN _pit_fresh THEN _pit_point_t END AS t, CASE WHEN _pit_fresh THEN _pit_point_available_at END AS available_at,
  CASE WHEN _pit_fresh THEN _pit_point_v END AS v, CASE WHEN _pit_fresh THEN _pit_point_o END AS o,
  CASE WHEN _pit_fresh THEN to_microseconds(_pit_age) END AS age
FROM (SELECT *, {{fresh _pit_shift}} AS _pit_fresh FROM {{text
{{part newest_point}},
_pit_newest_rows AS MATERIALIZED (
  SELECT row_number() OVER () AS _pit_answer_id, newest.* FROM (
    SELECT * FROM _pit_hits WHERE available_at IS NOT NULL
    UNION ALL (SELECT m.* EXCLUDE (_pit_id), r.t, r.available_at, r.v, r.o
    FROM _pit_missed_rows AS m LEFT JOIN _pit_found_points AS r USING (_pit_id)
    ORDER BY m._pit_id)
  ) AS newest
),
_pit_newest AS (SELECT _pit_answer_id, asset, _pit_known_by, t, o FROM _pit_newest_rows),
{{earlier text asset}}
SELECT n.* EXCLUDE (_pit_answer_id, _pit_known_by, _pit_expected_t, t, available_at, v, o),
  p.t AS _pit_point_t, p.available_at AS _pit_point_available_at,
  p.v AS _pit_point_v, p.o AS _pit_point_o,
  epoch_us(n._pit_utc) - p._pit_end AS _pit_age, p._pit_shift
FROM _pit_newest_rows AS n
LEFT JOIN _pit_earlier_points AS p ON p._pit_answer_id = n._pit_answer_id
ORDER BY n._pit_answer_id}}));
COMMENT ON MACRO TABLE pit_join IS 'pit_join(decisions, metric, interval): each row of a table or view with asset and ts, and the newest point that was knowable at ts: t, available_at, v, o, age. Options: currency, exchange, network, component, max_age, latency, back, skip_nulls, unresolved, vintage, follow_renames.';
