-- pit_join in SQL that every engine understands: each row of the decisions, with the newest point that was knowable
--   at ts.
-- columns: those of the decisions, then t, available_at, v, o, age_us.
-- `pit_asset` is the asset of a point. Some engines rename `asset` to `d.asset` if both sides have a column of that
--   name.
-- law: L1. The cut by the clocks comes first. Then the points that were already overtaken when they arrived are
--   removed.
--   Each asset and instant then has one row, so that the last arrival by an instant is the newest point known then.
--   Instants are compared as whole microseconds.
--   If points may have several vintages, a value counts until the next vintage of its point.
--   With skip_nulls, an empty vintage withdraws its point. Until then the point is a passing answer. It is used where
--   it is newer than the lasting answer.
WITH requested AS (
  SELECT {{dimension_value currency}} AS currency, {{dimension_value exchange}} AS exchange, {{dimension_value network}} AS network,
    {{refuse count(*) = 0 | no such metric in endpoints}}
      + {{refuse coalesce({{option interval}}, '') NOT IN ({{intervals}}) | no such interval}}
      + {{refuse coalesce({{option backfill}}, 'strict') NOT IN ('strict', 'rule') | backfill is neither strict nor rule}}
      + {{option_check}}
      + {{refuse {{lacks_value currency currencies}} | no such currency}}
      + {{refuse {{lacks_value exchange exchanges}} | no such exchange}}
      + {{refuse {{lacks_value network networks}} | no such network}}
      + {{refuse {{seconds latency}} < 0 | latency is negative}}
      + {{refuse {{seconds max_age}} < 0 | max_age is negative}} AS option_checks
  FROM {{table endpoints}} AS e
  WHERE e.metric = CASE WHEN {{option metric}} = 'price_usd' THEN 'supply/current_pit'
    ELSE {{option metric}} END
),
known AS (
  SELECT p.asset, p.t, p.available_at, p.v, p.o{{if_revisable , p.observed_at}}
  FROM (
{{view points}}
  ) AS p CROSS JOIN requested AS a
  WHERE p.metric = {{option metric}} AND p."interval" = {{option interval}}
    AND coalesce(p.currency, '') = coalesce(a.currency, '') AND coalesce(p.exchange, '') = coalesce(a.exchange, '')
    AND coalesce(p.network, '') = coalesce(a.network, '')
    {{if_not_revisable AND (NOT {{flag skip_nulls}} OR p.v IS NOT NULL OR p.o IS NOT NULL)}}
  -- The price that the supply in usd and the supply in coins imply: known when both are.
  UNION ALL
  SELECT u.asset, u.t, greatest(u.available_at, n.available_at) AS available_at,
    CASE WHEN n.v <> 0 THEN u.v / n.v END AS v, u.o{{if_revisable , greatest(u.observed_at, n.observed_at) AS observed_at}}
  FROM (
{{view points}}
  ) AS u JOIN (
{{view points}}
  ) AS n ON n.asset = u.asset AND n.t = u.t AND n."interval" = u."interval"
    AND coalesce(n.exchange, '') = coalesce(u.exchange, '') AND coalesce(n.network, '') = coalesce(u.network, '')
  WHERE {{option metric}} = 'price_usd' AND u."interval" = {{option interval}} AND u.metric = 'supply/current_pit'
    AND n.metric = 'supply/current_pit'
    AND u.currency = 'usd' AND n.currency = 'native' AND (NOT {{flag skip_nulls}} OR u.v IS NOT NULL AND n.v <> 0)
),
{{if_revisable
followed AS (
  SELECT p.*, CASE WHEN {{flag skip_nulls}} AND p.v IS NULL AND p.o IS NULL THEN 1 ELSE 0 END AS withdrawn,
    min(CASE WHEN p.t IS NOT NULL THEN p.available_at END)
      OVER (PARTITION BY p.asset, p.t ORDER BY p.available_at, p.observed_at
      ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING) AS next_at,
    min(CASE WHEN {{flag skip_nulls}} AND p.v IS NULL AND p.o IS NULL THEN p.available_at END)
      OVER (PARTITION BY p.asset, p.t
      ORDER BY p.available_at, p.observed_at ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING) AS withdrawn_at
  FROM known AS p
),
vintages AS (
  SELECT p.* FROM followed AS p WHERE p.withdrawn = 0 AND (p.next_at IS NULL OR p.next_at > p.available_at)
),
passing AS (
  SELECT p.asset AS pit_asset, p.t, p.available_at, p.v, p.o, {{micros p.available_at}} AS at_us,
    {{micros p.next_at}} AS next_us,
    {{end {{micros p.t}}}} AS end_us
  FROM vintages AS p WHERE p.withdrawn_at IS NOT NULL
),
passing_changes AS (
  SELECT DISTINCT p.pit_asset AS change_asset, CASE WHEN e.ends = 1 THEN p.next_us ELSE p.at_us END AS change_us
  FROM passing AS p CROSS JOIN (SELECT 0 AS ends UNION ALL SELECT 1 AS ends) AS e
),
passages AS (
  SELECT u.change_us, p.pit_asset, p.t, p.available_at, p.v, p.o, p.end_us,
    row_number() OVER (PARTITION BY u.change_asset, u.change_us ORDER BY p.t DESC) AS nth
  FROM passing_changes AS u JOIN passing AS p ON p.pit_asset = u.change_asset
  WHERE p.at_us <= u.change_us AND u.change_us < p.next_us
),}}
arrivals AS (
  SELECT p.*, {{newest p.asset}} AS newest, {{following p.asset}} AS following
  FROM {{if_revisable_or_not (SELECT * FROM vintages WHERE withdrawn_at IS NULL) | known}} AS p
),
frontier AS (
  SELECT f.asset AS pit_asset, f.t, f.available_at, f.v, f.o, {{micros f.available_at}} AS at_us,
    {{end {{micros f.t}}}} AS end_us
  FROM arrivals AS f WHERE f.t >= f.newest AND (f.following IS NULL OR f.following <> f.available_at)
),
decision_times AS (
  SELECT DISTINCT d.asset, {{micros d.ts}} - {{seconds latency}} + a.option_checks AS k_us
  FROM {{decisions}} AS d CROSS JOIN requested AS a WHERE d.asset IS NOT NULL AND d.ts IS NOT NULL
),
timeline AS (
  SELECT f.pit_asset AS asset, f.at_us AS k_us, 0 AS kind FROM frontier AS f
  UNION ALL SELECT m.asset, m.k_us, 1 AS kind FROM decision_times AS m
  {{if_revisable UNION ALL SELECT u.change_asset AS asset, u.change_us AS k_us, -1 AS kind FROM passing_changes AS u}}
),
answers AS (
  SELECT l.asset, l.k_us, l.kind, max(CASE WHEN l.kind = 0 THEN l.k_us END)
    OVER (PARTITION BY l.asset ORDER BY l.k_us, l.kind
      ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS at_us{{if_revisable ,
    max(CASE WHEN l.kind = -1 THEN l.k_us END)
    OVER (PARTITION BY l.asset ORDER BY l.k_us, l.kind
      ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS change_us}}
  FROM timeline AS l
){{if_revisable ,
both_answers AS (
  SELECT r.asset AS pit_asset, r.k_us, CASE WHEN f.t IS NULL OR g.t > f.t THEN 1 ELSE 0 END AS passes,
    f.t AS t, f.available_at AS available_at, f.v AS v, f.o AS o, f.end_us AS end_us,
    g.t AS passing_t, g.available_at AS passing_at, g.v AS passing_v, g.o AS passing_o, g.end_us AS passing_end_us
  FROM answers AS r
  LEFT JOIN frontier AS f ON f.pit_asset = r.asset AND f.at_us = r.at_us
  LEFT JOIN (SELECT p.* FROM passages AS p WHERE p.nth = 1) AS g ON g.pit_asset = r.asset AND g.change_us = r.change_us
  WHERE r.kind = 1
),
chosen AS (
  SELECT b.pit_asset, b.k_us, CASE WHEN b.passes = 1 THEN b.passing_t ELSE b.t END AS t,
    CASE WHEN b.passes = 1 THEN b.passing_at ELSE b.available_at END AS available_at,
    CASE WHEN b.passes = 1 THEN b.passing_v ELSE b.v END AS v,
    CASE WHEN b.passes = 1 THEN b.passing_o ELSE b.o END AS o,
    CASE WHEN b.passes = 1 THEN b.passing_end_us ELSE b.end_us END AS end_us
  FROM both_answers AS b
)}}
SELECT d.*, {{fresh f.t}} AS t, {{fresh f.available_at}} AS available_at, {{fresh f.v}} AS v, {{fresh f.o}} AS o,
  {{fresh {{micros d.ts}} - f.end_us}} AS age_us
FROM {{decisions}} AS d
{{if_revisable_or_not
LEFT JOIN chosen AS f ON f.pit_asset = d.asset AND f.k_us = {{micros d.ts}} - {{seconds latency}} |
LEFT JOIN (SELECT r.asset AS pit_asset, r.k_us, r.at_us FROM answers AS r WHERE r.kind = 1) AS r
  ON r.pit_asset = d.asset AND r.k_us = {{micros d.ts}} - {{seconds latency}}
LEFT JOIN frontier AS f ON f.pit_asset = r.pit_asset AND f.at_us = r.at_us}}
