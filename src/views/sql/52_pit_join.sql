-- pit_join: every row of a relation with asset and ts, with the newest point of a metric that was knowable at ts.
-- columns: those of the caller, then t, available_at, v, o, age.
-- law: L1. Knowable is available_at <= ts - latency; of the knowable the largest t. Exact with late points: the expected
--   start is looked up by hash, and where that is not known yet the tail decides (src/views/joins.ts).
-- Two semi-joins stand for one filter: they tell the optimiser that few rows are missed, so that the points, not the
--   misses, pass by the small side of the joins that follow.
CREATE OR REPLACE MACRO pit_join(decisions, metric, "interval", currency := NULL, exchange := NULL, network := NULL,
  component := NULL, max_age := NULL, latency := NULL, skip_nulls := false, beyond := 'value', vintage := 'last',
  identity := 'apart') AS TABLE
WITH {{known}} (
  SELECT p.* FROM {{series}} AS p WHERE NOT coalesce(CAST(skip_nulls AS BOOLEAN), false) OR p.v IS NOT NULL OR p.o IS NOT NULL
),{{vintages asset {{revised metric}}}}
_pit_x AS NOT MATERIALIZED (
  SELECT k.* EXCLUDE (_pit_lag, _pit_newest), {{expected k._pit_k k._pit_lag k._pit_newest}} AS _pit_e
  FROM (
    SELECT u.*, {{before u._pit_u}} AS _pit_k, {{lag metric}} AS _pit_lag, {{newest metric}} AS _pit_newest
    FROM (SELECT yours.*, {{utc yours.ts}} AS _pit_u FROM query_table(decisions) AS yours) AS u
  ) AS k
),
_pit_s AS MATERIALIZED (
  SELECT x.*, p.available_at AS _pit_a, p.v AS _pit_v, p.o AS _pit_o
  FROM _pit_x AS x LEFT JOIN _pit_p AS p ON CAST(x.asset AS VARCHAR) = p.asset AND x._pit_e = p.t AND p.available_at <= x._pit_k{{current p x._pit_k}}
),
_pit_m AS MATERIALIZED (
  SELECT s.* EXCLUDE (_pit_a, _pit_v, _pit_o), row_number() OVER () AS _pit_i
  FROM _pit_s AS s SEMI JOIN (VALUES (true)) AS one (yes) ON (s._pit_a IS NULL) = one.yes
    SEMI JOIN (VALUES (true)) AS two (yes) ON (s._pit_a IS NULL) = two.yes
),
_pit_n AS (SELECT _pit_i, CAST(asset AS VARCHAR) AS asset, _pit_k, _pit_e, _pit_e < {{first_start metric}} AS _pit_none FROM _pit_m),
{{misses _pit_p asset}},
_pit_all AS NOT MATERIALIZED (
  SELECT * FROM _pit_s WHERE _pit_a IS NOT NULL
  UNION ALL (SELECT m.* EXCLUDE (_pit_i, _pit_e), r.t, r.available_at, r.v, r.o FROM _pit_m AS m LEFT JOIN _pit_r AS r USING (_pit_i) ORDER BY m._pit_i)
  UNION ALL SELECT * FROM _pit_s WHERE EXISTS (
    SELECT t, available_at, v, o, age
    FROM query_table(decisions) AS yours, (SELECT NULL AS t, NULL AS available_at, NULL AS v, NULL AS o, NULL AS age) AS pit_join
    LIMIT 0
  )
),
_pit_aged AS NOT MATERIALIZED (
  SELECT *, epoch_us(_pit_u) - {{end _pit_e "interval"}} AS _pit_age, {{fresh}} AS _pit_fresh FROM _pit_all
)
SELECT * EXCLUDE (_pit_u, _pit_k, _pit_e, _pit_a, _pit_v, _pit_o, _pit_age, _pit_fresh),
  CASE WHEN _pit_fresh THEN _pit_e END AS t, CASE WHEN _pit_fresh THEN _pit_a END AS available_at,
  CASE WHEN _pit_fresh THEN _pit_v END AS v, CASE WHEN _pit_fresh THEN _pit_o END AS o,
  CASE WHEN _pit_fresh THEN to_microseconds(_pit_age) END AS age
FROM _pit_aged;
COMMENT ON MACRO TABLE pit_join IS 'pit_join(decisions, metric, interval): each row of a table or view with asset and ts, and the newest point that was knowable at ts: t, available_at, v, o, age. Options: currency, exchange, network, component, max_age, latency, skip_nulls, beyond, vintage, identity.';
