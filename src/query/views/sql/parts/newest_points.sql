-- The newest point that was knowable of each metric of a list, a row for each decision and metric (_pit_all), and the points
-- (_pit_p) of the metrics (_pit_names).
_pit_names AS MATERIALIZED (
  SELECT names.*, names.mi // 60 AS chunk, names.mi % 60 AS bit, dense_rank() OVER (ORDER BY names.lag, names.newest) AS class
  FROM (
    SELECT one.*, {{wanted currency one.line}} AS wanted_currency, {{wanted exchange one.line}} AS wanted_exchange,
      {{wanted network one.line}} AS wanted_network, {{lag_class one.path}} AS lag, {{first_end one.path}} AS first_end,
      {{newest one.path}} AS newest
    FROM (
      SELECT own.*, {{line own.path}} AS line, {{pointer own.name}} AS pointer, row_number() OVER () - 1 AS mi
      FROM (SELECT own.name, {{path own.name}} AS path FROM (SELECT unnest(list_distinct(CAST(metrics AS VARCHAR[]))) AS name) AS own) AS own
    ) AS one
  ) AS names
),
{{known}} (
  SELECT p.* FROM (
    SELECT names.mi, names.class, known.asset, known.t, known.available_at{{flagged}},
      {{leaf v names.pointer}} AS v,
      CASE WHEN {{unresolved}} AND known."interval" IS NULL THEN '' ELSE {{leaf o names.pointer}} END AS o
    FROM {{points_of metrics}} AS known
    JOIN _pit_names AS names ON known.metric = names.path AND known.currency IS NOT DISTINCT FROM names.wanted_currency
      AND known.exchange IS NOT DISTINCT FROM names.wanted_exchange AND known.network IS NOT DISTINCT FROM names.wanted_network
  ) AS p
  WHERE {{counted p p.revised}}
),{{vintages mi,asset w.revised}}
_pit_x AS MATERIALIZED (
  SELECT u.* EXCLUDE (_pit_u), {{before u._pit_u}} AS _pit_k, row_number() OVER () AS _pit_i
  FROM (SELECT yours.*, {{utc yours.ts}} AS _pit_u FROM query_table(decisions) AS yours) AS u
),
_pit_y AS NOT MATERIALIZED (
  SELECT x.*, classes.class AS _pit_class, {{expected x._pit_k classes.lag classes.newest}} AS _pit_e
  FROM _pit_x AS x, (SELECT DISTINCT names.class, names.lag, names.newest FROM _pit_names AS names) AS classes
),
_pit_c AS MATERIALIZED (
  SELECT p.* FROM _pit_p AS p SEMI JOIN (
    SELECT DISTINCT y._pit_class, CAST(y.asset AS VARCHAR) AS asset, {{back y._pit_e past.n}} AS t
    FROM _pit_y AS y, (VALUES (0), (1), (2), (3)) AS past (n)
  ) AS y ON y._pit_class = p.class AND y.asset = p.asset AND y.t = p.t
),
_pit_s AS MATERIALIZED (
  SELECT y.* EXCLUDE (_pit_class, _pit_e), p.mi AS _pit_mi, p.t AS _pit_t, p.available_at AS _pit_a, p.v AS _pit_v, p.o AS _pit_o
  FROM _pit_y AS y JOIN _pit_c AS p
    ON y._pit_class = p.class AND CAST(y.asset AS VARCHAR) = p.asset AND y._pit_e = p.t AND p.available_at <= y._pit_k{{current p y._pit_k}}
),
_pit_got AS (
  SELECT s._pit_i * {{chunks}} + (s._pit_mi // 60) AS place, bit_or(CAST(1 AS BIGINT) << (s._pit_mi % 60)) AS bits
  FROM _pit_s AS s GROUP BY 1
),
_pit_n AS MATERIALIZED (
  SELECT n.*, epoch_us(n._pit_k) - n.lag < epoch_us(n.first_end) AS _pit_none FROM (
  SELECT x._pit_i, names.mi, CAST(x.asset AS VARCHAR) AS asset, x._pit_k, names.first_end, names.lag, {{expected x._pit_k names.lag names.newest}} AS _pit_e
  FROM (
    SELECT x._pit_i, x.asset, x._pit_k, chunks.chunk, coalesce(got.bits, 0) AS bits
    FROM (SELECT x.*, unnest(range({{chunks}})) AS chunk FROM _pit_x AS x) AS x
    JOIN (SELECT names.chunk, bit_or(CAST(1 AS BIGINT) << names.bit) AS bits FROM _pit_names AS names GROUP BY 1) AS chunks USING (chunk)
    LEFT JOIN _pit_got AS got ON got.place = x._pit_i * {{chunks}} + x.chunk
    WHERE coalesce(got.bits, 0) <> chunks.bits
  ) AS x
  JOIN _pit_names AS names ON names.chunk = x.chunk AND ((x.bits >> names.bit) & 1) = 0) AS n
),
{{misses _pit_c mi asset}},
_pit_all AS NOT MATERIALIZED (
  SELECT s.* EXCLUDE (_pit_i) FROM _pit_s AS s
  UNION ALL SELECT x.* EXCLUDE (_pit_i), n.mi, r.t, r.available_at, r.v, r.o
  FROM _pit_n AS n JOIN _pit_x AS x ON x._pit_i = n._pit_i LEFT JOIN _pit_r AS r ON r._pit_i = n._pit_i AND r.mi = n.mi
  UNION ALL SELECT s.* EXCLUDE (_pit_i) FROM _pit_s AS s WHERE EXISTS (
    SELECT "metric", t, available_at, v, o, age
    FROM query_table(decisions) AS yours, (SELECT NULL AS "metric", NULL AS t, NULL AS available_at, NULL AS v, NULL AS o, NULL AS age) AS pit_long
    LIMIT 0
  )
)
