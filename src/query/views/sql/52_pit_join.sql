-- pit_join: every row of a relation with asset and ts, with the newest point of a metric that was knowable at ts.
-- columns: those of the caller, then t, available_at, v, o, age.
-- law: L1. Knowable is available_at <= ts - latency; of the knowable the largest t. Exact with late points: the expected
--   start is looked up by hash, and where that is not known yet the tail decides (src/query/views/joins.ts).
-- Two semi-joins stand for one filter: they tell the optimiser that few rows are missed, so that the points, not the
--   misses, pass by the small side of the joins that follow.
-- _pit_none: not even the first point can be known. It compares instants, not expected starts: weeks of different series
--   may begin on different days.
-- With back a point of the same knowledge answers that ended that span before the newest one did; see joins-earlier.
CREATE OR REPLACE MACRO pit_join(decisions, metric, "interval", currency := NULL, exchange := NULL, network := NULL,
  component := NULL, max_age := NULL, latency := NULL, skip_nulls := false, unresolved := 'value', vintage := 'last',
  follow_renames := false) AS TABLE (
WITH _pit_x AS NOT MATERIALIZED (
  SELECT u.*, CASE WHEN latency IS NULL THEN u._pit_u ELSE {{before u._pit_u}} END AS _pit_k
  FROM (SELECT yours.*, {{utc yours.ts}} AS _pit_u FROM query_table(decisions) AS yours) AS u
)
SELECT * EXCLUDE (_pit_u, _pit_t, _pit_a, _pit_v, _pit_o, _pit_age, _pit_fresh),
  CASE WHEN _pit_fresh THEN _pit_t END AS t, CASE WHEN _pit_fresh THEN _pit_a END AS available_at,
  CASE WHEN _pit_fresh THEN _pit_v END AS v, CASE WHEN _pit_fresh THEN _pit_o END AS o,
  CASE WHEN _pit_fresh THEN to_microseconds(_pit_age) END AS age
FROM (SELECT *, {{fresh}} AS _pit_fresh FROM {{text
{{part newest_point}}
SELECT * EXCLUDE (_pit_k, _pit_e, t, available_at, v, o), t AS _pit_t, available_at AS _pit_a, v AS _pit_v, o AS _pit_o,
  epoch_us(_pit_u) - {{its end}} AS _pit_age
FROM (
  SELECT * FROM _pit_s WHERE available_at IS NOT NULL
  UNION ALL (SELECT m.* EXCLUDE (_pit_i), r.t, r.available_at, r.v, r.o FROM _pit_m AS m LEFT JOIN _pit_r AS r USING (_pit_i) ORDER BY m._pit_i)
)}})
), (decisions, metric, "interval", back, currency := NULL, exchange := NULL, network := NULL,
  component := NULL, max_age := NULL, latency := NULL, skip_nulls := false, unresolved := 'value', vintage := 'last',
  follow_renames := false) AS TABLE (
WITH _pit_x AS NOT MATERIALIZED (
  SELECT u.*, CASE WHEN latency IS NULL THEN u._pit_u ELSE {{before u._pit_u}} END AS _pit_k
  FROM (SELECT yours.*, {{utc yours.ts}} AS _pit_u FROM query_table(decisions) AS yours) AS u
)
SELECT * EXCLUDE (_pit_u, _pit_t, _pit_a, _pit_v, _pit_o, _pit_age, _pit_shift, _pit_fresh),
  CASE WHEN _pit_fresh THEN _pit_t END AS t, CASE WHEN _pit_fresh THEN _pit_a END AS available_at,
  CASE WHEN _pit_fresh THEN _pit_v END AS v, CASE WHEN _pit_fresh THEN _pit_o END AS o,
  CASE WHEN _pit_fresh THEN to_microseconds(_pit_age) END AS age
FROM (SELECT *, {{fresh _pit_shift}} AS _pit_fresh FROM {{text
{{part newest_point}},
_pit_now AS MATERIALIZED (
  SELECT row_number() OVER () AS _pit_j, newest.* FROM (
    SELECT * FROM _pit_s WHERE available_at IS NOT NULL
    UNION ALL (SELECT m.* EXCLUDE (_pit_i), r.t, r.available_at, r.v, r.o FROM _pit_m AS m LEFT JOIN _pit_r AS r USING (_pit_i) ORDER BY m._pit_i)
  ) AS newest
),
_pit_newest AS (SELECT _pit_j, asset, _pit_k, t, o FROM _pit_now),
{{earlier text asset}}
SELECT n.* EXCLUDE (_pit_j, _pit_k, _pit_e, t, available_at, v, o), p.t AS _pit_t, p.available_at AS _pit_a, p.v AS _pit_v, p.o AS _pit_o,
  epoch_us(n._pit_u) - p._pit_end AS _pit_age, p._pit_shift
FROM _pit_now AS n LEFT JOIN _pit_then AS p ON p._pit_j = n._pit_j ORDER BY n._pit_j}}));
COMMENT ON MACRO TABLE pit_join IS 'pit_join(decisions, metric, interval): each row of a table or view with asset and ts, and the newest point that was knowable at ts: t, available_at, v, o, age. Options: currency, exchange, network, component, max_age, latency, back, skip_nulls, unresolved, vintage, follow_renames.';
