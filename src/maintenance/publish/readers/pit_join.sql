-- pit_join in the words of every SQL engine: each row of the decisions, and the newest point that was knowable at its ts.
-- columns: those of the decisions, then t, available_at, v, o, age_us.
-- law: L1. The cut comes first, then what was overtaken when it arrived leaves; what is left has one row for an asset and
--   instant, so that "the last arrival by then" is the newest point. Instants are compared as whole microseconds.
WITH asked AS (
  SELECT {{taken currency}} AS currency, {{taken exchange}} AS exchange, {{taken network}} AS network,
    {{refuse count(*) = 0 | no such metric in endpoints}}
      + {{refuse coalesce({{option interval}}, '') NOT IN ({{intervals}}) | no such interval}}
      + {{refuse coalesce({{option backfill}}, 'strict') NOT IN ('strict', 'rule') | backfill is neither strict nor rule}}
      + {{strange}}
      + {{refuse {{lacks currency currencies}} | no such currency}} + {{refuse {{lacks exchange exchanges}} | no such exchange}}
      + {{refuse {{lacks network networks}} | no such network}}
      + {{refuse {{seconds latency}} < 0 | latency is negative}}
      + {{refuse {{seconds max_age}} < 0 | max_age is negative}} AS wrong
  FROM {{table endpoints}} AS e WHERE e.metric = {{option metric}}
),
known AS (
  SELECT p.asset, p.t, p.available_at, p.v, p.o
  FROM (
{{view points}}
  ) AS p CROSS JOIN asked AS a
  WHERE p.metric = {{option metric}} AND p."interval" = {{option interval}}
    AND coalesce(p.currency, '') = coalesce(a.currency, '') AND coalesce(p.exchange, '') = coalesce(a.exchange, '')
    AND coalesce(p.network, '') = coalesce(a.network, '')
    AND (NOT {{flag skip_nulls}} OR p.v IS NOT NULL OR p.o IS NOT NULL)
),
arrivals AS (
  SELECT p.*, {{newest p.asset}} AS newest, {{following p.asset}} AS following FROM known AS p
),
frontier AS (
  SELECT f.asset, f.t, f.available_at, f.v, f.o, {{micros f.available_at}} AS at_us, {{end {{micros f.t}}}} AS end_us
  FROM arrivals AS f WHERE f.t >= f.newest AND (f.following IS NULL OR f.following <> f.available_at)
),
moments AS (
  SELECT DISTINCT d.asset, {{micros d.ts}} - {{seconds latency}} + a.wrong AS k_us
  FROM {{decisions}} AS d CROSS JOIN asked AS a WHERE d.asset IS NOT NULL AND d.ts IS NOT NULL
),
line AS (
  SELECT f.asset, f.at_us AS k_us, 0 AS kind FROM frontier AS f
  UNION ALL SELECT m.asset, m.k_us, 1 AS kind FROM moments AS m
),
answers AS (
  SELECT l.asset, l.k_us, l.kind, max(CASE WHEN l.kind = 0 THEN l.k_us END)
    OVER (PARTITION BY l.asset ORDER BY l.k_us, l.kind ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS at_us
  FROM line AS l
)
SELECT d.*, {{fresh f.t}} AS t, {{fresh f.available_at}} AS available_at, {{fresh f.v}} AS v, {{fresh f.o}} AS o,
  {{fresh {{micros d.ts}} - f.end_us}} AS age_us
FROM {{decisions}} AS d
LEFT JOIN (SELECT r.* FROM answers AS r WHERE r.kind = 1) AS r
  ON r.asset = d.asset AND r.k_us = {{micros d.ts}} - {{seconds latency}}
LEFT JOIN frontier AS f ON f.asset = r.asset AND f.at_us = r.at_us
