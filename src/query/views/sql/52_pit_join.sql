-- pit_join: every row of a relation with asset and ts, with the newest point of a metric that was knowable at ts.
-- columns: those of the caller, then t, available_at, v, o, age.
-- law: L1. Knowable is available_at <= ts - latency; of the knowable the largest t. Exact with late points: the expected
--   start is looked up by hash, and where that is not known yet the tail decides (src/query/views/joins.ts).
-- Two semi-joins stand for one filter: they tell the optimiser that few rows are missed, so that the points, not the
--   misses, pass by the small side of the joins that follow.
-- _pit_none: not even the first point can be known. It compares instants, not expected starts: weeks of different series
--   may begin on different days.
CREATE OR REPLACE MACRO pit_join(decisions, metric, "interval", currency := NULL, exchange := NULL, network := NULL,
  component := NULL, max_age := NULL, latency := NULL, skip_nulls := false, unresolved := 'value', vintage := 'last',
  follow_renames := false) AS TABLE
WITH _pit_x AS NOT MATERIALIZED (
  SELECT u.*, CASE WHEN latency IS NULL THEN u._pit_u ELSE {{before u._pit_u}} END AS _pit_k
  FROM (SELECT yours.*, {{utc yours.ts}} AS _pit_u FROM query_table(decisions) AS yours) AS u
)
SELECT * EXCLUDE (_pit_u, _pit_t, _pit_a, _pit_v, _pit_o, _pit_age, _pit_fresh),
  CASE WHEN _pit_fresh THEN _pit_t END AS t, CASE WHEN _pit_fresh THEN _pit_a END AS available_at,
  CASE WHEN _pit_fresh THEN _pit_v END AS v, CASE WHEN _pit_fresh THEN _pit_o END AS o,
  CASE WHEN _pit_fresh THEN to_microseconds(_pit_age) END AS age
FROM (SELECT *, {{fresh}} AS _pit_fresh FROM {{text
_pit_s AS MATERIALIZED (
  SELECT yours.*, t, available_at, v, o
  FROM (
    SELECT x.* EXCLUDE (_pit_at), least({{its start}}, make_timestamptz({{its newest}})) AS _pit_e
    FROM (SELECT x.*, epoch_us(x._pit_k) - {{its lag}} AS _pit_at FROM _pit_x AS x) AS x
  ) AS yours
  LEFT JOIN (SELECT p.*, NULL AS age FROM _pit_p AS p) AS pit_join ON CAST(yours.asset AS VARCHAR) = pit_join.asset
    AND yours._pit_e = pit_join.t AND pit_join.available_at <= yours._pit_k{{current pit_join yours._pit_k}} AND age IS NULL
),
_pit_m AS MATERIALIZED (
  SELECT s.* EXCLUDE (t, available_at, v, o), row_number() OVER () AS _pit_i
  FROM _pit_s AS s SEMI JOIN (VALUES (true)) AS one (yes) ON (s.available_at IS NULL) = one.yes
    SEMI JOIN (VALUES (true)) AS two (yes) ON (s.available_at IS NULL) = two.yes
),
_pit_n AS (SELECT _pit_i, CAST(asset AS VARCHAR) AS asset, _pit_k, _pit_e, epoch_us(_pit_k) - {{its lag}} < {{its first_end}} AS _pit_none FROM _pit_m),
{{misses _pit_p asset}}
SELECT * EXCLUDE (_pit_k, _pit_e, t, available_at, v, o), t AS _pit_t, available_at AS _pit_a, v AS _pit_v, o AS _pit_o,
  epoch_us(_pit_u) - {{its end}} AS _pit_age
FROM (
  SELECT * FROM _pit_s WHERE available_at IS NOT NULL
  UNION ALL (SELECT m.* EXCLUDE (_pit_i), r.t, r.available_at, r.v, r.o FROM _pit_m AS m LEFT JOIN _pit_r AS r USING (_pit_i) ORDER BY m._pit_i)
)}});
COMMENT ON MACRO TABLE pit_join IS 'pit_join(decisions, metric, interval): each row of a table or view with asset and ts, and the newest point that was knowable at ts: t, available_at, v, o, age. Options: currency, exchange, network, component, max_age, latency, skip_nulls, unresolved, vintage, follow_renames.';
