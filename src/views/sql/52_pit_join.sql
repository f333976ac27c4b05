-- pit_join: every row of a relation with asset and ts, with the newest point of a metric that was knowable at ts.
-- columns: those of the caller, then t, available_at, v, o, age.
-- law: L1. Knowable is available_at <= ts - latency; of the knowable the largest t. Exact with late points: the expected
--   start, or the newest of all where that is earlier, is looked up by hash, and where that is not known yet the tail
--   decides (src/views/joins.ts). Bare names of columns that are added are looked for in both sides: a clash is an error.
CREATE OR REPLACE MACRO pit_join(decisions, metric, "interval", currency := NULL, exchange := NULL, network := NULL,
  component := NULL, max_age := NULL, latency := NULL, skip_nulls := false, beyond := 'value') AS TABLE
FROM {{asked metric
WITH _pit_p AS MATERIALIZED (SELECT p.* FROM ({{the series}}) AS p WHERE {{the counted}}),
_pit_s AS MATERIALIZED (
  SELECT yours.*, t, available_at, v, o
  FROM (
    SELECT x.* EXCLUDE (_pit_at), least({{the start}}, newest.t) AS _pit_e
    FROM (SELECT k.*, epoch_us(k._pit_k) - {{own_lag {{the lag}}}} AS _pit_at FROM {{the known}} AS k) AS x,
      (SELECT max(p.t) AS t FROM _pit_p AS p) AS newest
  ) AS yours
  LEFT JOIN (SELECT p.*, NULL AS age FROM _pit_p AS p) AS pit_join ON CAST(yours.asset AS VARCHAR) = pit_join.asset
    AND yours._pit_e = pit_join.t AND pit_join.available_at <= yours._pit_k AND age IS NULL
),
_pit_m AS MATERIALIZED (
  SELECT s.* EXCLUDE (t, available_at, v, o), row_number() OVER () AS _pit_i FROM _pit_s AS s WHERE s.available_at IS NULL
),
{{misses asset}}
SELECT * EXCLUDE (_pit_k, _pit_e, _pit_age)
  REPLACE ({{fresh_columns}}), CASE WHEN {{the fresh}} THEN to_microseconds(_pit_age) END AS age
FROM (
  SELECT *, epoch_us(_pit_k) + {{the latency}} - {{the end}} AS _pit_age
  FROM (
    SELECT * FROM _pit_s WHERE available_at IS NOT NULL
    UNION ALL
    SELECT m.* EXCLUDE (_pit_i), r.t, r.available_at, r.v, r.o FROM _pit_m AS m LEFT JOIN _pit_r AS r ON r._pit_i = m._pit_i
  )
)}};
COMMENT ON MACRO TABLE pit_join IS 'pit_join(decisions, metric, interval): each row of a table or view with asset and ts, and the newest point that was knowable at ts: t, available_at, v, o, age. Options: currency, exchange, network, component, max_age, latency, skip_nulls, beyond.';
