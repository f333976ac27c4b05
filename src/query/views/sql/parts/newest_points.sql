-- The newest point of each metric of a list that was knowable at each decision.
-- _pit_all: one row for each decision and metric. _pit_all_points: the points. _pit_names: the metrics.
-- All points are read once. Only points of the starts that decisions expect, and of the three starts before each, are
--   stored.
-- For each decision, a bit for each answered metric shows which metrics are left for the tail of the join.
-- Metrics whose smallest lags are close to each other share an expected start. Any lag that is not above the true one
--   gives exact results.
_pit_names AS MATERIALIZED (
  SELECT names.*, names.mi // 60 AS chunk, names.mi % 60 AS bit,
    dense_rank() OVER (ORDER BY names.lag, names.newest) AS class
  FROM (
    SELECT facts.*, {{wanted currency facts.line}} AS wanted_currency, {{wanted exchange facts.line}} AS wanted_exchange,
      {{wanted network facts.line}} AS wanted_network, {{lag_class facts.path}} AS lag,
      {{first_end facts.path}} AS first_end,
      {{newest facts.path}} AS newest
    FROM (
      SELECT given.*,
        {{line given.path}} AS line, {{pointer given.name}} AS pointer,
        row_number() OVER () - 1 AS mi
      FROM (SELECT given.name, {{path given.name}} AS path
        FROM (SELECT unnest(list_distinct(CAST(metrics AS VARCHAR[]))) AS name) AS given) AS given
    ) AS facts
  ) AS names
),
{{known}} (
  SELECT p.* FROM (
    SELECT names.mi, names.class, known.asset, known.t, known.available_at{{flagged}},
      {{leaf v names.pointer}} AS v,
      CASE WHEN {{unresolved}} AND known."interval" IS NULL THEN '' ELSE {{leaf o names.pointer}} END AS o
    FROM {{points_of metrics}} AS known
    JOIN _pit_names AS names
      ON known.metric = names.path
        AND known.currency IS NOT DISTINCT FROM names.wanted_currency
      AND known.exchange IS NOT DISTINCT FROM names.wanted_exchange
        AND known.network IS NOT DISTINCT FROM names.wanted_network
  ) AS p
  WHERE {{counted p p.revised}}
),{{vintages mi,asset w.revised}}
_pit_decisions AS MATERIALIZED (
  SELECT u.* EXCLUDE (_pit_utc), {{before u._pit_utc}} AS _pit_known_by, row_number() OVER () AS _pit_id
  FROM (SELECT yours.*, {{utc yours.ts}} AS _pit_utc FROM query_table(decisions) AS yours) AS u
),
_pit_expectations AS NOT MATERIALIZED (
  SELECT x.*, classes.class AS _pit_class, {{expected x._pit_known_by classes.lag classes.newest}} AS _pit_expected_t
  FROM _pit_decisions AS x, (SELECT DISTINCT names.class, names.lag, names.newest FROM _pit_names AS names) AS classes
),
_pit_candidates AS MATERIALIZED (
  SELECT p.* FROM _pit_all_points AS p SEMI JOIN (
    SELECT DISTINCT y._pit_class, CAST(y.asset AS VARCHAR) AS asset, {{back y._pit_expected_t past.n}} AS t
    FROM _pit_expectations AS y, (VALUES (0), (1), (2), (3)) AS past (n)
  ) AS y ON y._pit_class = p.class AND y.asset = p.asset AND y.t = p.t
),
_pit_hits AS MATERIALIZED (
  SELECT y.* EXCLUDE (_pit_class, _pit_expected_t), p.mi AS _pit_metric_number,
    p.t AS _pit_point_t, p.available_at AS _pit_point_available_at, p.v AS _pit_point_v, p.o AS _pit_point_o
  FROM _pit_expectations AS y JOIN _pit_candidates AS p
    ON y._pit_class = p.class AND CAST(y.asset AS VARCHAR) = p.asset AND y._pit_expected_t = p.t
      AND p.available_at <= y._pit_known_by{{current p y._pit_known_by}}
),
_pit_answered_metrics AS (
  SELECT s._pit_id * {{chunks}} + (s._pit_metric_number // 60) AS chunk_place,
    bit_or(CAST(1 AS BIGINT) << (s._pit_metric_number % 60)) AS bits
  FROM _pit_hits AS s GROUP BY 1
),
_pit_misses AS MATERIALIZED (
  SELECT n.*, epoch_us(n._pit_known_by) - n.lag < epoch_us(n.first_end) AS _pit_before_first FROM (
  SELECT x._pit_id, names.mi, CAST(x.asset AS VARCHAR) AS asset, x._pit_known_by, names.first_end, names.lag,
    {{expected x._pit_known_by names.lag names.newest}} AS _pit_expected_t
  FROM (
    SELECT x._pit_id, x.asset, x._pit_known_by, chunks.chunk, coalesce(answered.bits, 0) AS bits
    FROM (SELECT x.*, unnest(range({{chunks}})) AS chunk FROM _pit_decisions AS x) AS x
    JOIN (SELECT names.chunk,
      bit_or(CAST(1 AS BIGINT) << names.bit) AS bits FROM _pit_names AS names GROUP BY 1) AS chunks USING (chunk)
    LEFT JOIN _pit_answered_metrics AS answered ON answered.chunk_place = x._pit_id * {{chunks}} + x.chunk
    WHERE coalesce(answered.bits, 0) <> chunks.bits
  ) AS x
  JOIN _pit_names AS names ON names.chunk = x.chunk AND ((x.bits >> names.bit) & 1) = 0) AS n
),
{{misses _pit_candidates mi asset}},
_pit_all AS NOT MATERIALIZED (
  SELECT s.* EXCLUDE (_pit_id) FROM _pit_hits AS s
  UNION ALL SELECT x.* EXCLUDE (_pit_id), n.mi, r.t, r.available_at, r.v, r.o
  FROM _pit_misses AS n
  JOIN _pit_decisions AS x ON x._pit_id = n._pit_id
  LEFT JOIN _pit_found_points AS r ON r._pit_id = n._pit_id AND r.mi = n.mi
  UNION ALL SELECT s.* EXCLUDE (_pit_id) FROM _pit_hits AS s WHERE EXISTS (
    SELECT "metric", t, available_at, v, o, age
    FROM query_table(decisions) AS yours,
      (SELECT NULL AS "metric", NULL AS t, NULL AS available_at, NULL AS v,
      NULL AS o, NULL AS age) AS pit_long
    LIMIT 0
  )
)
