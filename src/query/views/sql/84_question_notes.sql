-- question_notes: what a reader of an answer should know although nobody asked: why it may hold nothing, and what may have been meant.
-- columns: code, subject, figures (JSON), near, there, words.
-- law: L1. As known at as_of; whoever may look further unsets it, and says in the question where it stood. `asked` is JSON:
--   metrics: [{name (* for any), interval, asset, currency, exchange, network: lists; component; defaults: the catalogue's stand in;
--     everywhere: nothing was told of any asset; last: the newest instant asked; since, until: of t; times: any t was asked}],
--   texts (constants of a query), tables (views and macros that it reads), grids (ends of calendars), empty, as_of, beyond: [{metric, decisions, since}].
CREATE OR REPLACE MACRO question_notes(asked) AS TABLE
WITH _pit_asked AS (
  SELECT row_number() OVER () AS n, split_part(one.name, '#', 1) AS path,
    CASE WHEN contains(one.name, '#') THEN substr(one.name, instr(one.name, '#') + 1) ELSE one.component END AS pointer, one.*
  FROM (
    SELECT unnest(from_json(coalesce(json_extract(CAST(asked AS VARCHAR), '$.metrics'), '[]'), '[{"name": "VARCHAR", "interval": ["VARCHAR"], "asset": ["VARCHAR"],
      "currency": ["VARCHAR"], "exchange": ["VARCHAR"], "network": ["VARCHAR"], "component": "VARCHAR", "defaults": "BOOLEAN",
      "everywhere": "BOOLEAN", "last": "TIMESTAMPTZ", "since": "TIMESTAMPTZ", "until": "TIMESTAMPTZ", "times": "BOOLEAN"}]')) AS one
  )
),
_pit_texts AS (
  SELECT DISTINCT unnest(from_json(coalesce(json_extract(CAST(asked AS VARCHAR), '$.texts'), '[]'), '["VARCHAR"]')) AS text
),
_pit_known AS MATERIALIZED (
  SELECT path AS metric, default_currency AS currency, default_exchange AS exchange, default_network AS network FROM {{ledger endpoints}}
  UNION ALL SELECT 'price_usd', NULL, NULL, NULL FROM {{ledger endpoints}} WHERE path = 'supply/current_pit'
),
_pit_points AS NOT MATERIALIZED (
  SELECT * FROM ({{points}}) AS points
  WHERE list_has_any(list_transform(json_extract_string(CAST(asked AS VARCHAR), '$.metrics[*].name'),
    lambda one: CASE WHEN one = 'price_usd' THEN 'supply/current_pit' ELSE split_part(one, '#', 1) END), [metric, '*'])
),
_pit_held AS MATERIALIZED (
  SELECT metric, asset, "interval", currency, exchange, network, min(t) AS first_t, max(t) AS last_t, min(available_at) AS first_at
  FROM {{ever_known}} GROUP BY ALL
),
_pit_parts AS (
  SELECT metric, list(DISTINCT component ORDER BY component) AS parts
  FROM ({{leaves (SELECT p.* FROM _pit_points AS p JOIN _pit_held AS h ON h.metric = p.metric AND h.asset = p.asset AND h."interval" = p."interval" AND h.last_t = p.t)}})
  GROUP BY metric
),
-- By metric and interval asked: what there is, and of the assets asked since when.
_pit_there AS (
  SELECT h.n, list(DISTINCT h."interval" ORDER BY h."interval") AS intervals, list(DISTINCT h.asset ORDER BY h.asset) FILTER (h.fits) AS assets,
    list(DISTINCT h.currency ORDER BY h.currency) FILTER (h.fits AND h.currency IS NOT NULL) AS currencies,
    list(DISTINCT h.exchange ORDER BY h.exchange) FILTER (h.fits AND h.exchange IS NOT NULL) AS exchanges,
    list(DISTINCT h.network ORDER BY h.network) FILTER (h.fits AND h.network IS NOT NULL) AS networks,
    min(h.first_at) FILTER (h.own) AS first_at, min(h.first_t) FILTER (h.own) AS first_t, max(h.last_t) FILTER (h.own) AS last_t
  FROM (
    SELECT a.n, h.*, len(a."interval") = 0 OR list_has_any(a."interval", ['*', h."interval"]) AS fits, fits AND (len(a.asset) = 0 OR list_contains(a.asset, h.asset)) AS own
    FROM _pit_asked AS a JOIN _pit_held AS h ON h.metric = CASE a.path WHEN 'price_usd' THEN 'supply/current_pit' WHEN '*' THEN h.metric ELSE a.path END
  ) AS h
  GROUP BY h.n
),
_pit_lost AS (
  SELECT a.*, k.metric IS NOT NULL OR a.path = '*' AS known, t.* EXCLUDE (n), t.n IS NOT NULL AS held, coalesce(p.parts, []) AS parts,
    list_filter(a.asset, lambda one: NOT list_contains(t.assets, one))[1] AS lost,
    list_filter([
      {'dimension': 'currency', 'wanted': CASE WHEN len(a.currency) = 0 AND a.defaults AND k.currency IS NOT NULL THEN [k.currency] ELSE a.currency END, 'there': coalesce(t.currencies, [])},
      {'dimension': 'exchange', 'wanted': CASE WHEN len(a.exchange) = 0 AND a.defaults AND k.exchange IS NOT NULL THEN [k.exchange] ELSE a.exchange END, 'there': coalesce(t.exchanges, [])},
      {'dimension': 'network', 'wanted': CASE WHEN len(a.network) = 0 AND a.defaults AND k.network IS NOT NULL THEN [k.network] ELSE a.network END, 'there': coalesce(t.networks, [])}
    ], lambda one: a.path <> 'price_usd' AND (len(one.there) > 0 OR NOT a.defaults)
      AND len(list_filter(one.wanted, lambda value: value <> '*' AND NOT list_contains(one.there, value))) > 0)[1] AS side
  FROM _pit_asked AS a LEFT JOIN _pit_known AS k ON k.metric = a.path LEFT JOIN _pit_there AS t ON t.n = a.n
    LEFT JOIN _pit_parts AS p ON p.metric = a.path AND a.everywhere AND a.path <> 'price_usd'
),
_pit_start AS (
  SELECT min(observed_at) AS start FROM {{files snapshots}}
  WHERE ({{unset as_of}} OR observed_at <= {{as_of}}) AND ({{unset observed_as_of}} OR observed_at <= {{observed_as_of}})
),
_pit_coded AS (
  SELECT l.n, CASE WHEN l.path = '*' THEN coalesce(l.lost, 'points') ELSE l.path END AS subject, CASE
      WHEN l.path = 'price_usd' AND NOT l.defaults THEN 'price-view'
      WHEN NOT l.known THEN 'unknown-metric'
      WHEN NOT l.held THEN CASE WHEN {{unset as_of}} THEN 'nothing-held' ELSE 'unknown-then' END
      WHEN l.assets IS NULL THEN 'no-interval'
      WHEN l.lost IS NOT NULL THEN CASE WHEN l.path = '*' THEN 'unknown-asset' ELSE 'no-asset' END
      WHEN l.side IS NOT NULL THEN 'no-dimension'
      WHEN least(l.last, CAST(json_extract_string(CAST(asked AS VARCHAR), '$.as_of') AS TIMESTAMPTZ)) < l.first_at THEN {{before_first l.path}}
      WHEN l.times OR l.since > l.last_t OR l.until <= l.first_t THEN 'held-between'
      WHEN NOT l.everywhere THEN NULL
      WHEN len(l.parts) = 0 THEN CASE WHEN l.pointer IS NOT NULL AND l.path <> 'price_usd' THEN 'plain-numbers' END
      WHEN l.pointer IS NULL THEN 'whole-object'
      WHEN NOT list_contains(l.parts, l.pointer) THEN 'no-component' END AS code,
    CASE code WHEN 'no-interval' THEN l."interval"[1] WHEN 'no-asset' THEN l.lost WHEN 'unknown-asset' THEN l.lost
      WHEN 'no-dimension' THEN list_filter(l.side.wanted, lambda one: NOT list_contains(l.side.there, one))[1] WHEN 'no-component' THEN l.pointer END AS word,
    CASE code WHEN 'no-interval' THEN l.intervals WHEN 'no-asset' THEN l.assets WHEN 'unknown-asset' THEN l.assets WHEN 'no-dimension' THEN l.side.there WHEN 'no-component' THEN l.parts
      WHEN 'whole-object' THEN list_transform(l.parts[:2], lambda part: l.path || '#' || part) END AS names,
    to_json({'interval': l."interval"[1], 'asset': l.lost, 'dimension': l.side.dimension, 'value': word, 'component': l.pointer,
      'start': {{told l.first_at}}, 'first': {{told l.first_t}}, 'last': {{told l.last_t}}}) AS figures
  FROM _pit_lost AS l
  UNION ALL
  SELECT NULL, split_part(t.text, '#', 1), 'unknown-metric', NULL, NULL, NULL FROM _pit_texts AS t
  WHERE regexp_matches(split_part(t.text, '#', 1), '^[A-Za-z0-9_]+/[A-Za-z0-9_]+$') AND split_part(t.text, '#', 1) NOT IN (SELECT metric FROM _pit_known)
  UNION ALL
  SELECT NULL, t.text, 'unknown-asset', t.text, list(DISTINCT p.asset ORDER BY p.asset), NULL
  FROM _pit_texts AS t JOIN ({{points}}) AS p ON lower(p.asset) = lower(t.text)
  GROUP BY t.text HAVING NOT list_contains(list(DISTINCT p.asset), t.text)
  UNION ALL
  SELECT NULL, 'registry', r.code, NULL, NULL, to_json({'start': {{told r.start}}}) FROM (
    SELECT s.start, CASE
        WHEN q.at < coalesce(s.start, CAST('infinity' AS TIMESTAMPTZ)) AND {{registry_backfill}} THEN CASE WHEN s.start IS NOT NULL THEN 'registry-assumed' END
        WHEN q.at < s.start THEN 'registry-unknown' WHEN q.at IS NOT NULL AND s.start IS NULL THEN 'registry-empty'
        WHEN NOT q.empty THEN NULL WHEN s.start IS NULL THEN 'no-registry' ELSE 'before-registry' END AS code
    FROM _pit_start AS s, (
      SELECT CAST(json_extract_string(CAST(asked AS VARCHAR), '$.as_of') AS TIMESTAMPTZ) AS at, coalesce(CAST(json_extract(CAST(asked AS VARCHAR), '$.empty') AS BOOLEAN), false) AS empty,
        from_json(coalesce(json_extract(CAST(asked AS VARCHAR), '$.tables'), '[]'), '["VARCHAR"]') AS names
    ) AS q WHERE list_has_any(q.names, {{registry_names}})
  ) AS r
  UNION ALL
  SELECT NULL, l.name, 'ledger-then', NULL, NULL, NULL
  FROM (SELECT unnest(from_json(coalesce(json_extract(CAST(asked AS VARCHAR), '$.tables'), '[]'), '["VARCHAR"]')) AS name) AS l
  WHERE getvariable('ledger_as_of') IS NOT NULL AND coalesce(CAST(json_extract(CAST(asked AS VARCHAR), '$.empty') AS BOOLEAN), false)
    AND list_contains({{ledger_names}}, l.name)
  UNION ALL
  SELECT NULL, 'calendar', 'reversed-calendar', NULL, NULL, to_json({'since': g.ends[1], 'until': g.ends[2]})
  FROM (SELECT unnest(from_json(coalesce(json_extract(CAST(asked AS VARCHAR), '$.grids'), '[]'), '[["VARCHAR"]]')) AS ends) AS g
  WHERE TRY_CAST(g.ends[1] AS TIMESTAMPTZ) > TRY_CAST(g.ends[2] AS TIMESTAMPTZ)
  UNION ALL
  SELECT NULL, b.one.metric, 'beyond-settled', NULL, NULL, to_json({'decisions': b.one.decisions, 'since': {{told b.one.since}}})
  FROM (SELECT unnest(from_json(coalesce(json_extract(CAST(asked AS VARCHAR), '$.beyond'), '[]'), '[{"metric": "VARCHAR", "decisions": "BIGINT", "since": "TIMESTAMPTZ"}]')) AS one) AS b
),
_pit_near AS (
  SELECT c.*, CASE WHEN c.code = 'unknown-metric' THEN {{nearest_path c.subject k.metrics}}
    WHEN c.word IS NOT NULL AND c.code <> 'whole-object' THEN {{nearest c.word c.names}} END AS near
  FROM _pit_coded AS c, (SELECT list(metric ORDER BY metric) AS metrics FROM _pit_known) AS k WHERE c.code IS NOT NULL
)
SELECT near.code, near.subject, near.figures, coalesce(near.near, CAST([] AS VARCHAR[])) AS near,
  CASE WHEN len(coalesce(near.near, [])) = 0 THEN coalesce(near.names[:6], CAST([] AS VARCHAR[])) ELSE CAST([] AS VARCHAR[]) END AS there, words.words
FROM _pit_near AS near JOIN {{note_words}} ON words.code = near.code
ORDER BY near.n NULLS LAST;
COMMENT ON MACRO TABLE question_notes IS 'question_notes(asked): what a reader of an answer should know although nobody asked, one row a note; asked is JSON that says what was asked (docs/views.md). The doors of pitlake render it.';
