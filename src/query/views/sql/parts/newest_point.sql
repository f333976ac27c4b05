-- The newest point that was knowable of one metric, inside the text of pit_join: rows that found the point they expect
-- (_pit_s), the others (_pit_m) and what they found (_pit_r). Needs _pit_x and _pit_p.
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
