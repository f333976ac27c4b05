-- question_notes: notes for the reader of an answer: why it may be empty, and what may have been meant.
-- columns: code, subject, figures (JSON), near, there, words.
-- reads: products name symbol isin status, issuers name status jurisdiction, assets name asset_class ticker.
-- law: L1. The notes use only what is known at as_of. A caller that may look further unsets as_of and passes it
--   inside `asked`.
-- `asked` is JSON with these keys:
--   metrics: a list of {name (* for any), interval, asset, currency, exchange, network: lists; component; defaults:
--   whether the catalogue's defaults apply; everywhere: whether the answer is empty for every asset; last: the newest
--   ts; since, until: bounds of t; times: whether the query compares t}.
--   texts: constants of the query. tables: views and macros that it reads. grids: the two ends of each calendar.
--   empty: whether the answer has no rows. as_of: the limit of the caller. without_instant: how many decisions have
--   no ts.
--   beyond: a list of {metric, decisions, since} about unresolved decisions.
--   members: a list of {column, value}, the comparisons with columns of the registry.
CREATE OR REPLACE MACRO question_notes(asked) AS TABLE
WITH _pit_metrics AS (
  SELECT row_number() OVER () AS n, split_part(item.name, '#', 1) AS path,
    CASE WHEN contains(item.name, '#') THEN substr(item.name, instr(item.name, '#') + 1)
      ELSE item.component END AS pointer,
    item.*
  FROM (
    SELECT unnest(from_json(coalesce(json_extract(CAST(asked AS VARCHAR), '$.metrics'), '[]'), '[{"name": "VARCHAR", "interval": ["VARCHAR"], "asset": ["VARCHAR"],
      "currency": ["VARCHAR"], "exchange": ["VARCHAR"], "network": ["VARCHAR"], "component": "VARCHAR", "defaults": "BOOLEAN",
      "everywhere": "BOOLEAN", "last": "TIMESTAMPTZ", "since": "TIMESTAMPTZ", "until": "TIMESTAMPTZ", "times": "BOOLEAN"}]')) AS item
  )
),
_pit_texts AS (
  SELECT DISTINCT
    unnest(from_json(coalesce(json_extract(CAST(asked AS VARCHAR), '$.texts'), '[]'), '["VARCHAR"]')) AS text
),
_pit_known AS MATERIALIZED (
  SELECT path AS metric, default_currency AS currency, default_exchange AS exchange, default_network AS network
  FROM {{ledger endpoints}}
  UNION ALL
  SELECT 'price_usd', NULL, NULL, NULL FROM {{ledger endpoints}} WHERE path = 'supply/current_pit'
),
_pit_points AS NOT MATERIALIZED (
  SELECT * FROM ({{points}}) AS points
  WHERE list_has_any(
    list_transform(json_extract_string(CAST(asked AS VARCHAR), '$.metrics[*].name'), lambda item:
      CASE WHEN item = 'price_usd' THEN 'supply/current_pit' ELSE split_part(item, '#', 1) END),
    [metric, '*'])
),
_pit_series AS MATERIALIZED (
  SELECT metric, asset, "interval", currency, exchange, network, min(t) AS first_t, max(t) AS last_t,
    min(available_at) AS first_at
  FROM {{points_and_vintages}}
  GROUP BY ALL
),
_pit_last_points AS MATERIALIZED (
  SELECT p.* FROM _pit_points AS p
  JOIN _pit_series AS h
    ON h.metric = p.metric AND h.asset = p.asset AND h."interval" = p."interval" AND h.last_t = p.t
),
_pit_components AS MATERIALIZED (
  SELECT DISTINCT metric, asset, component FROM ({{components_of (FROM _pit_last_points)}})
),
-- Metrics whose values are objects or lists; without a number in them they have no component.
_pit_object_metrics AS (
  SELECT DISTINCT metric FROM _pit_last_points WHERE o IS NOT NULL
),
-- Queried metrics whose pointer selects something in a value, such as a text, which is no component.
_pit_selected AS (
  SELECT DISTINCT a.n FROM _pit_metrics AS a JOIN _pit_last_points AS p ON p.metric = a.path
  WHERE starts_with(a.pointer, '/') AND json_exists(p.o, a.pointer)
    AND (len(a.asset) = 0 OR list_contains(a.asset, p.asset))
),
-- The components of each queried metric: those of all assets, and those of the queried assets.
_pit_parts AS (
  SELECT a.n, list(DISTINCT l.component ORDER BY l.component) AS parts,
    list(DISTINCT l.component ORDER BY l.component)
      FILTER (len(a.asset) = 0 OR list_contains(a.asset, l.asset)) AS asset_parts
  FROM _pit_metrics AS a JOIN _pit_components AS l ON l.metric = a.path
  GROUP BY a.n
),
-- The values of each dimension that are stored at the queried interval, and the first and last points of the assets.
_pit_stored_values AS (
  SELECT h.n, list(DISTINCT h."interval" ORDER BY h."interval") AS intervals,
    list(DISTINCT h.asset ORDER BY h.asset) FILTER (h.has_interval) AS assets,
    list(DISTINCT h.currency ORDER BY h.currency) FILTER (h.has_interval AND h.currency IS NOT NULL) AS currencies,
    list(DISTINCT h.exchange ORDER BY h.exchange) FILTER (h.has_interval AND h.exchange IS NOT NULL) AS exchanges,
    list(DISTINCT h.network ORDER BY h.network) FILTER (h.has_interval AND h.network IS NOT NULL) AS networks,
    list(DISTINCT h.asset) AS assets_anywhere,
    min(h.first_at) FILTER (h.has_asset) AS first_at, min(h.first_t) FILTER (h.has_asset) AS first_t,
    max(h.last_t) FILTER (h.has_asset) AS last_t
  FROM (
    SELECT a.n, h.*,
      len(a."interval") = 0 OR list_has_any(a."interval", ['*', h."interval"]) AS has_interval,
      has_interval AND (len(a.asset) = 0 OR list_contains(a.asset, h.asset)) AS has_asset
    FROM _pit_metrics AS a
    JOIN _pit_series AS h
      ON h.metric = CASE a.path WHEN 'price_usd' THEN 'supply/current_pit' WHEN '*' THEN h.metric ELSE a.path END
  ) AS h
  GROUP BY h.n
),
-- The queried values of each dimension, with the defaults of the catalogue if they apply.
_pit_filters AS (
  SELECT a.n, a.path, a.asset, a."interval",
    CASE WHEN len(a.currency) = 0 AND a.defaults AND k.currency IS NOT NULL THEN [k.currency]
      ELSE a.currency END AS currency,
    CASE WHEN len(a.exchange) = 0 AND a.defaults AND k.exchange IS NOT NULL THEN [k.exchange]
      ELSE a.exchange END AS exchange,
    CASE WHEN len(a.network) = 0 AND a.defaults AND k.network IS NOT NULL THEN [k.network]
      ELSE a.network END AS network
  FROM _pit_metrics AS a LEFT JOIN _pit_known AS k ON k.metric = a.path
),
-- The series of each queried asset, and up to which dimension they match the query.
_pit_matches AS (
  SELECT w.n, w.path, h.*,
    len(w."interval") = 0 OR list_has_any(w."interval", ['*', h."interval"]) AS in_interval,
    in_interval AND (len(w.currency) = 0 OR h.currency IS NULL
      OR list_has_any(w.currency, ['*', h.currency])) AS in_currency,
    in_currency AND (len(w.exchange) = 0 OR h.exchange IS NULL
      OR list_has_any(w.exchange, ['*', h.exchange])) AS in_exchange,
    in_exchange AND (len(w.network) = 0 OR h.network IS NULL
      OR list_has_any(w.network, ['*', h.network])) AS in_network
  FROM _pit_filters AS w
  JOIN _pit_series AS h
    ON h.metric = CASE w.path WHEN 'price_usd' THEN 'supply/current_pit' ELSE w.path END
      AND list_contains(w.asset, h.asset)
),
-- The first asset without a matching series: the dimension in which none matches, and the stored values of that.
_pit_mismatches AS (
  SELECT u.n, arg_min(
    {'asset': u.asset, 'dimension': u.dimension, 'stored_values': u.stored_values}, u.asset) AS mismatch
  FROM (
    SELECT f.n, f.asset, CASE
        WHEN NOT bool_or(f.in_interval) THEN 'interval'
        WHEN f.path = 'price_usd' THEN CASE
          WHEN count(DISTINCT f.currency) FILTER (f.in_interval AND f.currency IN ('native', 'usd')) < 2
            THEN 'price' END
        WHEN NOT bool_or(f.in_currency) THEN 'currency'
        WHEN NOT bool_or(f.in_exchange) THEN 'exchange'
        WHEN NOT bool_or(f.in_network) THEN 'network' END AS dimension,
      coalesce(CASE dimension
        WHEN 'interval' THEN list(DISTINCT f."interval" ORDER BY f."interval")
        WHEN 'exchange' THEN list(DISTINCT f.exchange ORDER BY f.exchange) FILTER (f.in_currency)
        WHEN 'network' THEN list(DISTINCT f.network ORDER BY f.network) FILTER (f.in_exchange)
        ELSE list(DISTINCT f.currency ORDER BY f.currency) FILTER (f.in_interval) END, []) AS stored_values
    FROM _pit_matches AS f
    GROUP BY f.n, f.path, f.asset
  ) AS u
  WHERE u.dimension IS NOT NULL
  GROUP BY u.n
),
-- Everything that the code of a note depends on, one row for each queried metric.
_pit_checks AS (
  SELECT a.*, k.metric IS NOT NULL OR a.path = '*' AS is_known, t.* EXCLUDE (n), t.n IS NOT NULL AS is_stored,
    coalesce(p.parts, []) AS parts, coalesce(p.asset_parts, []) AS asset_parts, u.mismatch,
    s.n IS NOT NULL AS selects_value, o.metric IS NOT NULL AS has_objects,
    CASE u.mismatch.dimension
      WHEN 'interval' THEN a."interval"[1]
      WHEN 'currency' THEN w.currency[1]
      WHEN 'exchange' THEN w.exchange[1]
      WHEN 'network' THEN w.network[1]
      WHEN 'price' THEN list_filter(['native', 'usd'], lambda item:
        NOT list_contains(u.mismatch.stored_values, item))[1] END AS mismatch_value,
    list_filter(a.asset, lambda item: NOT list_contains(t.assets_anywhere, item))[1] AS missing_asset,
    list_filter([
      {'dimension': 'currency', 'wanted_values': w.currency, 'stored_values': coalesce(t.currencies, [])},
      {'dimension': 'exchange', 'wanted_values': w.exchange, 'stored_values': coalesce(t.exchanges, [])},
      {'dimension': 'network', 'wanted_values': w.network, 'stored_values': coalesce(t.networks, [])}
    ], lambda item: a.path <> 'price_usd' AND (len(item.stored_values) > 0 OR NOT a.defaults)
      AND len(list_filter(item.wanted_values, lambda value:
        value <> '*' AND NOT list_contains(item.stored_values, value))) > 0)[1] AS missing_dimension
  FROM _pit_metrics AS a
  JOIN _pit_filters AS w ON w.n = a.n
  LEFT JOIN _pit_known AS k ON k.metric = a.path
  LEFT JOIN _pit_stored_values AS t ON t.n = a.n
  LEFT JOIN _pit_mismatches AS u ON u.n = a.n
  LEFT JOIN _pit_selected AS s ON s.n = a.n
  LEFT JOIN _pit_object_metrics AS o ON o.metric = a.path
  LEFT JOIN _pit_parts AS p ON p.n = a.n AND (a.everywhere OR len(a.asset) > 0) AND a.path <> 'price_usd'
),
_pit_start AS (
  SELECT min(observed_at) AS start FROM {{files snapshots}}
  WHERE ({{unset as_of}} OR observed_at <= {{as_of}})
    AND ({{unset observed_as_of}} OR observed_at <= {{observed_as_of}})
),
_pit_members AS (
  SELECT DISTINCT item.*
  FROM (
    SELECT unnest(from_json(coalesce(json_extract(CAST(asked AS VARCHAR), '$.members'), '[]'),
      '[{"column": "VARCHAR", "value": "VARCHAR"}]')) AS item
  )
),
_pit_registry_end AS (
  SELECT least(
    CASE WHEN {{unset as_of}} THEN CAST('infinity' AS TIMESTAMPTZ)
      WHEN {{registry_backfill}} THEN greatest({{as_of}}, min(observed_at)) ELSE {{as_of}} END,
    coalesce({{observed_as_of}}, CAST('infinity' AS TIMESTAMPTZ))) AS until
  FROM {{files snapshots}}
),
_pit_registry_values AS (
  SELECT unnest(['status', 'symbol', 'name', 'isin']) AS "column", unnest([status, symbol, name, isin]) AS value, "at"
  FROM {{files history.products}} WHERE op IS NOT NULL
  UNION ALL
  SELECT unnest(['issuer_name', 'issuer_status', 'jurisdiction']), unnest([name, status, jurisdiction]), "at"
  FROM {{files history.issuers}} WHERE op IS NOT NULL
  UNION ALL
  SELECT unnest(['asset_name', 'asset_class', 'ticker']), unnest([name, asset_class, ticker]), "at"
  FROM {{files history.assets}} WHERE op IS NOT NULL
),
_pit_no_member AS (
  SELECT m."column", m.value, list(DISTINCT r.value ORDER BY r.value) AS stored_values
  FROM _pit_members AS m JOIN _pit_registry_values AS r ON r."column" = m."column"
  WHERE r.value IS NOT NULL AND r."at" <= (SELECT until FROM _pit_registry_end)
  GROUP BY m."column", m.value HAVING NOT list_contains(stored_values, m.value)
),
-- One row for each note: its code, the misspelt word, the names it may have meant, and the statistics of its text.
_pit_codes AS (
  SELECT l.n, CASE WHEN l.path = '*' THEN coalesce(l.missing_asset, 'points') ELSE l.path END AS subject,
    CASE
      WHEN l.path = 'price_usd' AND NOT l.defaults THEN 'price-view'
      WHEN NOT l.is_known THEN 'unknown-metric'
      WHEN NOT l.is_stored THEN CASE WHEN {{unset as_of}} THEN 'nothing-held' ELSE 'unknown-then' END
      WHEN l.assets IS NULL THEN 'no-interval'
      WHEN l.missing_asset IS NOT NULL THEN CASE WHEN l.path = '*' THEN 'unknown-asset' ELSE 'no-asset' END
      WHEN l.missing_dimension IS NOT NULL THEN 'no-dimension'
      WHEN l.mismatch.dimension = 'price' THEN 'no-price'
      WHEN l.mismatch IS NOT NULL THEN 'no-series'
      WHEN least(l.last, CAST(json_extract_string(CAST(asked AS VARCHAR), '$.as_of') AS TIMESTAMPTZ)) < l.first_at
        THEN {{before_first_code l.path}}
      WHEN l.times OR l.since > l.last_t OR l.until <= l.first_t THEN 'held-between'
      WHEN l.everywhere AND len(l.parts) = 0
        THEN CASE
          WHEN l.pointer IS NOT NULL AND l.path <> 'price_usd' AND NOT l.has_objects
          THEN 'plain-numbers' END
      WHEN l.everywhere AND l.pointer IS NULL THEN 'whole-object'
      WHEN l.selects_value THEN NULL
      WHEN len(l.parts) > 0 AND NOT list_contains(l.parts, l.pointer) THEN 'no-component'
      WHEN len(l.asset_parts) > 0 AND NOT list_contains(l.asset_parts, l.pointer) THEN 'no-asset-component' END AS code,
    CASE code
      WHEN 'no-interval' THEN l."interval"[1]
      WHEN 'no-asset' THEN l.missing_asset
      WHEN 'unknown-asset' THEN l.missing_asset
      WHEN 'no-dimension' THEN list_filter(l.missing_dimension.wanted_values, lambda item:
        NOT list_contains(l.missing_dimension.stored_values, item))[1]
      WHEN 'no-series' THEN l.mismatch_value
      WHEN 'no-component' THEN l.pointer
      WHEN 'no-asset-component' THEN l.pointer END AS word,
    CASE code
      WHEN 'no-interval' THEN l.intervals
      WHEN 'no-asset' THEN l.assets
      WHEN 'unknown-asset' THEN l.assets
      WHEN 'no-dimension' THEN l.missing_dimension.stored_values
      WHEN 'no-series' THEN l.mismatch.stored_values
      WHEN 'no-component' THEN l.parts
      WHEN 'no-asset-component' THEN l.asset_parts
      WHEN 'whole-object' THEN list_transform(l.parts[:2], lambda part: l.path || '#' || part) END AS names,
    to_json({'interval': l."interval"[1],
      'asset': CASE code
        WHEN 'no-asset' THEN l.missing_asset
        WHEN 'no-series' THEN l.mismatch.asset
        WHEN 'no-price' THEN l.mismatch.asset
        ELSE l.asset[1] END,
      'dimension': CASE code WHEN 'no-series' THEN l.mismatch.dimension ELSE l.missing_dimension.dimension END,
      'value': coalesce(word, l.mismatch_value), 'component': l.pointer, 'start': {{utc_text l.first_at}},
      'first': {{utc_text l.first_t}}, 'last': {{utc_text l.last_t}}}) AS figures
  FROM _pit_checks AS l
  UNION ALL
  SELECT NULL, split_part(t.text, '#', 1), 'unknown-metric', NULL, NULL, NULL
  FROM _pit_texts AS t
  WHERE regexp_matches(split_part(t.text, '#', 1), '^[A-Za-z0-9_]+/[A-Za-z0-9_]+$')
    AND split_part(t.text, '#', 1) NOT IN (SELECT metric FROM _pit_known)
  UNION ALL
  SELECT NULL, t.text, 'unknown-asset', t.text, list(DISTINCT p.asset ORDER BY p.asset), NULL
  FROM _pit_texts AS t JOIN ({{points}}) AS p ON lower(p.asset) = lower(t.text)
  GROUP BY t.text HAVING NOT list_contains(list(DISTINCT p.asset), t.text)
  UNION ALL
  SELECT NULL, 'registry', r.code, NULL, NULL, to_json({'start': {{utc_text r.start}}})
  FROM (
    SELECT s.start, CASE
        WHEN q.at < coalesce(s.start, CAST('infinity' AS TIMESTAMPTZ)) AND {{registry_backfill}}
          THEN CASE WHEN s.start IS NOT NULL THEN 'registry-assumed' END
        WHEN q.at < s.start THEN 'registry-unknown'
        WHEN q.at IS NOT NULL AND s.start IS NULL THEN 'registry-empty'
        WHEN NOT q.empty OR {{registry_backfill}} OR EXISTS (FROM _pit_no_member) THEN NULL
        WHEN s.start IS NULL THEN 'no-registry'
        ELSE 'before-registry' END AS code
    FROM _pit_start AS s, (
      SELECT CAST(json_extract_string(CAST(asked AS VARCHAR), '$.as_of') AS TIMESTAMPTZ) AS at,
        coalesce(CAST(json_extract(CAST(asked AS VARCHAR), '$.empty') AS BOOLEAN), false) AS empty,
        from_json(coalesce(json_extract(CAST(asked AS VARCHAR), '$.tables'), '[]'), '["VARCHAR"]') AS names
    ) AS q
    WHERE list_has_any(q.names, {{registry_names}})
  ) AS r
  UNION ALL
  SELECT NULL, l.name, 'ledger-then', NULL, NULL, NULL
  FROM (
    SELECT unnest(from_json(coalesce(json_extract(CAST(asked AS VARCHAR), '$.tables'), '[]'), '["VARCHAR"]')) AS name
  ) AS l
  WHERE getvariable('ledger_as_of') IS NOT NULL
    AND coalesce(CAST(json_extract(CAST(asked AS VARCHAR), '$.empty') AS BOOLEAN), false)
    AND list_contains({{ledger_names}}, l.name)
  UNION ALL
  SELECT 1000 + row_number() OVER (ORDER BY n."column", n.value), n."column", 'no-registry-value', n.value,
    n.stored_values, to_json({'value': n.value})
  FROM _pit_no_member AS n
  UNION ALL
  SELECT NULL, 'ts', 'no-instant', NULL, NULL, to_json({'decisions': w.decisions})
  FROM (
    SELECT CAST(json_extract(CAST(asked AS VARCHAR), '$.without_instant') AS BIGINT) AS decisions
  ) AS w
  WHERE w.decisions > 0
  UNION ALL
  SELECT NULL, 'calendar', 'reversed-calendar', NULL, NULL, to_json({'since': g.ends[1], 'until': g.ends[2]})
  FROM (
    SELECT unnest(from_json(coalesce(json_extract(CAST(asked AS VARCHAR), '$.grids'), '[]'), '[["VARCHAR"]]')) AS ends
  ) AS g
  WHERE TRY_CAST(g.ends[1] AS TIMESTAMPTZ) > TRY_CAST(g.ends[2] AS TIMESTAMPTZ)
  UNION ALL
  SELECT NULL, b.item.metric, 'unresolved-decisions', NULL, NULL,
    to_json({'decisions': b.item.decisions, 'since': {{utc_text b.item.since}}})
  FROM (
    SELECT unnest(from_json(coalesce(json_extract(CAST(asked AS VARCHAR), '$.beyond'), '[]'),
      '[{"metric": "VARCHAR", "decisions": "BIGINT", "since": "TIMESTAMPTZ"}]')) AS item
  ) AS b
),
_pit_suggestions AS (
  SELECT c.*, CASE
    WHEN c.code = 'unknown-metric' THEN {{nearest_path c.subject k.metrics}}
    WHEN c.word IS NOT NULL AND c.code <> 'whole-object' THEN {{nearest c.word c.names}} END AS nearest_names
  FROM _pit_codes AS c, (SELECT list(metric ORDER BY metric) AS metrics FROM _pit_known) AS k
  WHERE c.code IS NOT NULL
)
SELECT suggestion.code, suggestion.subject, suggestion.figures,
  coalesce(suggestion.nearest_names, CAST([] AS VARCHAR[])) AS near,
  CASE WHEN len(coalesce(suggestion.nearest_names, [])) = 0
    THEN coalesce(suggestion.names[:6], CAST([] AS VARCHAR[])) ELSE CAST([] AS VARCHAR[]) END AS there,
  words.words
FROM _pit_suggestions AS suggestion JOIN {{note_words}} ON words.code = suggestion.code
ORDER BY suggestion.n NULLS LAST;
COMMENT ON MACRO TABLE question_notes IS 'question_notes(asked): notes about an answer, one row each: why it may be empty, and what may have been meant; asked is JSON that describes the query (docs/reference/views.md). The interfaces of pitlake show them.';
