-- The newest point of one metric that was knowable at each decision, inside the text of pit_join.
-- _pit_hits: the decisions, with the point of their expected start if that was known. _pit_missed_rows: the decisions
--   without one. _pit_found_points: the points found for these. Needs _pit_decisions and _pit_all_points.
-- The two semi-joins stand for one filter. They tell the optimiser that few rows are missed, so that the small side
--   of the following joins is the misses and not the points.
-- _pit_before_first is true if not even the first point can be known. It compares instants and not expected starts,
--   because weeks of different series may begin on different days.
_pit_hits AS MATERIALIZED (
  SELECT yours.*, t, available_at, v, o
  FROM (
    SELECT x.* EXCLUDE (_pit_latest_end), least({{its start}}, make_timestamptz({{its newest}})) AS _pit_expected_t
    FROM (SELECT x.*, epoch_us(x._pit_known_by) - {{its lag}} AS _pit_latest_end FROM _pit_decisions AS x) AS x
  ) AS yours
  LEFT JOIN (SELECT p.*, NULL AS age FROM _pit_all_points AS p) AS pit_join
    ON CAST(yours.asset AS VARCHAR) = pit_join.asset
    AND yours._pit_expected_t = pit_join.t
    AND pit_join.available_at <= yours._pit_known_by{{current pit_join yours._pit_known_by}}
    AND age IS NULL
),
_pit_missed_rows AS MATERIALIZED (
  SELECT s.* EXCLUDE (t, available_at, v, o), row_number() OVER () AS _pit_id
  FROM _pit_hits AS s
  SEMI JOIN (VALUES (true)) AS missed (flag) ON (s.available_at IS NULL) = missed.flag
    SEMI JOIN (VALUES (true)) AS missed_too (flag) ON (s.available_at IS NULL) = missed_too.flag
),
_pit_misses AS (
  SELECT _pit_id, CAST(asset AS VARCHAR) AS asset, _pit_known_by, _pit_expected_t,
    epoch_us(_pit_known_by) - {{its lag}} < {{its first_end}} AS _pit_before_first
  FROM _pit_missed_rows),
{{misses _pit_all_points asset}}
