-- pit_long: every row of a relation with asset and ts, once for each metric of a list, with the newest point knowable at ts.
-- columns: those of the caller, then metric, t, available_at, v, o, age.
-- law: L1. As pit_join. The rows of the caller are the build side of one hash join, all points probe it; a bit for each
--   metric that answered tells what is left for the tail. Metrics whose first arrivals lie close together share an
--   expected start: any lag that is not above the true one is exact. Metrics are numbers until the end.
CREATE OR REPLACE MACRO pit_long(decisions, metrics, "interval", currency := NULL, exchange := NULL, network := NULL,
  component := NULL, max_age := NULL, latency := NULL, skip_nulls := false, beyond := 'value') AS TABLE
FROM {{asked metrics
WITH _pit_names AS MATERIALIZED (
  SELECT row_number() OVER () - 1 AS metric, one.name, one.path, one.pointer, {{own_lag one.lag}} AS lag,
    CAST(one.currency AS VARCHAR) AS currency, CAST(one.exchange AS VARCHAR) AS exchange, CAST(one.network AS VARCHAR) AS network
  FROM (SELECT unnest([{{the names}}]) AS one)
),
_pit_p AS MATERIALIZED (
  SELECT p.* FROM (
    SELECT names.metric, names.lag, known.asset, known.t, known.available_at, {{the leaves}}
    FROM ({{the points}}) AS known JOIN _pit_names AS names ON known.metric = names.path
      AND known.currency IS NOT DISTINCT FROM names.currency AND known.exchange IS NOT DISTINCT FROM names.exchange
      AND known.network IS NOT DISTINCT FROM names.network
  ) AS p WHERE {{the counted}}
),
_pit_x AS MATERIALIZED (SELECT k.*, row_number() OVER () AS _pit_i FROM {{the known}} AS k),
_pit_s AS MATERIALIZED (
  SELECT yours.* EXCLUDE (_pit_lag, _pit_e), metric, t, available_at, v, o
  FROM (
    SELECT x.* EXCLUDE (_pit_at), least({{the start}}, newest.t) AS _pit_e
    FROM (
      SELECT x.*, lags.lag AS _pit_lag, epoch_us(x._pit_k) - lags.lag AS _pit_at
      FROM _pit_x AS x, (SELECT DISTINCT names.lag FROM _pit_names AS names) AS lags
    ) AS x, (SELECT max(p.t) AS t FROM _pit_p AS p) AS newest
  ) AS yours
  JOIN (SELECT p.*, NULL AS age FROM _pit_p AS p) AS pit_long ON yours._pit_lag = pit_long.lag
    AND CAST(yours.asset AS VARCHAR) = pit_long.asset AND yours._pit_e = pit_long.t
    AND pit_long.available_at <= yours._pit_k AND age IS NULL
),
_pit_got AS (
  SELECT s._pit_i * {{the chunks}} + (s.metric // 60) AS place, bit_or(CAST(1 AS BIGINT) << (s.metric % 60)) AS bits
  FROM _pit_s AS s GROUP BY 1
),
_pit_m AS MATERIALIZED (
  SELECT m._pit_i, m.metric, m.asset, m._pit_k, {{the start}} AS _pit_e
  FROM (
    SELECT x._pit_i, names.metric, CAST(x.asset AS VARCHAR) AS asset, x._pit_k, epoch_us(x._pit_k) - names.lag AS _pit_at
    FROM (
      SELECT x._pit_i, x.asset, x._pit_k, chunks.chunk, coalesce(got.bits, 0) AS bits
      FROM (SELECT x.*, unnest(range({{the chunks}})) AS chunk FROM _pit_x AS x) AS x
      JOIN (
        SELECT names.metric // 60 AS chunk, bit_or(CAST(1 AS BIGINT) << (names.metric % 60)) AS bits
        FROM _pit_names AS names GROUP BY 1
      ) AS chunks ON chunks.chunk = x.chunk
      LEFT JOIN _pit_got AS got ON got.place = x._pit_i * {{the chunks}} + x.chunk
      WHERE coalesce(got.bits, 0) <> chunks.bits
    ) AS x
    JOIN _pit_names AS names ON names.metric // 60 = x.chunk AND ((x.bits >> (names.metric % 60)) & 1) = 0
  ) AS m
),
{{misses metric asset}}
SELECT a.* EXCLUDE (_pit_k, _pit_age)
  REPLACE (names.name AS metric, {{fresh_columns}}), CASE WHEN {{the fresh}} THEN to_microseconds(_pit_age) END AS age
FROM (
  SELECT *, epoch_us(_pit_k) + {{the latency}} - {{the end}} AS _pit_age
  FROM (
    SELECT s.* EXCLUDE (_pit_i) FROM _pit_s AS s
    UNION ALL
    SELECT x.* EXCLUDE (_pit_i), m.metric, r.t, r.available_at, r.v, r.o
    FROM _pit_m AS m JOIN _pit_x AS x ON x._pit_i = m._pit_i LEFT JOIN _pit_r AS r ON r._pit_i = m._pit_i AND r.metric = m.metric
  )
) AS a JOIN _pit_names AS names ON names.metric = a.metric}};
COMMENT ON MACRO TABLE pit_long IS 'pit_long(decisions, metrics, interval): as pit_join for a list of metrics, a row for each row and metric, with a column metric. A name may end in #/pointer. Options: currency, exchange, network, component, max_age, latency, skip_nulls, beyond.';
