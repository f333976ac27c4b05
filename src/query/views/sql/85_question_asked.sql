-- question_asked: what the statements of a script ask, by their words; `question_notes` takes it.
-- columns: asked, one row of JSON: tables (views, macros and functions that they read), texts (their constants), counts (whether
--   the last one counts), grids (the two ends of each calendar), metrics (what a WHERE compares the columns of points with), joins (of each call of a join `metrics`, and two
--   statements over its decisions: `extent` tells last, assets and late; where one is late `beyond` tells metric, decisions, since).
-- law: none; it reads nothing. `parameters` is JSON of the texts that stand for $1 or $name. It knows the trees of DuckDB 1.5 and 2.0.
CREATE OR REPLACE MACRO question_asked(statements, parameters := '{}') AS TABLE
WITH _pit_trees AS (
  SELECT s, json_serialize_sql(regexp_replace(text, '^\s*CREATE\s+(OR\s+REPLACE\s+)?TEMP(ORARY)?\s+(TABLE|VIEW)\s+\S+\s+AS\b', '', 'i')) AS tree
  FROM (SELECT unnest(CAST(statements AS VARCHAR[])) AS text, generate_subscripts(CAST(statements AS VARCHAR[]), 1) AS s)
),
_pit_nodes AS MATERIALIZED (
  SELECT t.s, n.id, n.fullkey AS place, regexp_extract(n.fullkey, '^(.*)\.(left|right|input|children\[\d+\]|arguments\[\d+\]\.expression)$', 1) AS owner,
    n.value AS node, n.value->>'$.class' AS class, n.value->>'$.type' AS type, lower(n.value->>'$.alias') AS alias, lower(n.value->>'$.function_name') AS called,
    lower(n.value->>'$.column_names[#-1]') AS named, CASE n.value->>'$.type' WHEN 'BASE_TABLE' THEN lower(n.value->>'$.table_name') END AS read,
    CASE n.value->>'$.class' WHEN 'PARAMETER' THEN json_extract_string(CAST(parameters AS JSON), '$."' || (n.value->>'$.identifier') || '"')
      WHEN 'CONSTANT' THEN CASE WHEN n.value->>'$.literal.kind' = 'STRING' THEN n.value->>'$.literal.text'
        WHEN json_type(n.value, '$.value.value') = 'VARCHAR' THEN n.value->>'$.value.value' END END AS text
  FROM _pit_trees AS t, json_tree(t.tree) AS n WHERE n.type = 'OBJECT'
),
_pit_compared AS MATERIALIZED (
  SELECT c.named, v.text, o.id FROM _pit_nodes AS o JOIN _pit_nodes AS c ON c.s = o.s AND c.owner = o.place JOIN _pit_nodes AS v ON v.s = o.s AND v.owner = o.place
  WHERE o.type IN ('COMPARE_EQUAL', 'COMPARE_IN') AND c.named IS NOT NULL AND v.text IS NOT NULL
),
_pit_calls AS (
  SELECT s, id, place, called, {'pit_join': ['decisions', 'metric', 'interval'], 'pit_long': ['decisions', 'metric', 'interval'],
    'pit_window': ['decisions', 'metric', 'interval', 'n'], 'resample': ['metric', 'interval', 'to_interval', 'agg']} AS parameters
  FROM _pit_nodes WHERE called IN ('pit_join', 'pit_long', 'pit_window', 'resample')
),
_pit_given AS (
  SELECT c.s, c.id, a.id AS n, a.node, a.place, coalesce(a.text, a.named) AS text,
    CASE a.alias WHEN 'metrics' THEN 'metric' WHEN 'from_interval' THEN 'interval' ELSE nullif(a.alias, '') END AS own,
    CASE c.called WHEN 'resample' THEN c.parameters.resample WHEN 'pit_window' THEN c.parameters.pit_window ELSE c.parameters.pit_join END AS parameters
  FROM _pit_calls AS c JOIN _pit_nodes AS a ON a.s = c.s AND a.owner = c.place
),
_pit_arguments AS MATERIALIZED (
  SELECT g.*, coalesce(g.own, list_filter(g.parameters, lambda name: NOT list_contains(coalesce(o.owned, []), name))[row_number() OVER (PARTITION BY g.s, g.id, g.own IS NULL ORDER BY g.n)]) AS name
  FROM _pit_given AS g LEFT JOIN (SELECT s, id, list(own) AS owned FROM _pit_given WHERE own IS NOT NULL GROUP BY ALL) AS o USING (s, id)
),
_pit_joins AS (
  SELECT s, id, any_value(text) FILTER (name = 'decisions') AS relation, any_value(place) FILTER (name = 'metric') AS metric_place,
    any_value(text) FILTER (name = 'interval') AS "interval", any_value(text) FILTER (name = 'currency') AS currency,
    any_value(text) FILTER (name = 'exchange') AS exchange, any_value(text) FILTER (name = 'network') AS network,
    any_value(text) FILTER (name = 'component') AS component, coalesce(any_value(text) FILTER (name = 'beyond'), '') <> 'null' AS told,
    any_value(CAST(node AS VARCHAR)) FILTER (name = 'latency') AS latency
  FROM _pit_arguments GROUP BY s, id
),
_pit_decided AS (
  SELECT j.*, json_serialize_sql('SELECT asset, ts, NULL AS latency FROM "' || replace(j.relation, '"', '""') || '"') AS template,
    (SELECT coalesce(list(DISTINCT x.text ORDER BY x.text), []) FROM _pit_nodes AS x WHERE x.s = j.s AND x.text IS NOT NULL AND starts_with(x.place, j.metric_place)) AS metrics,
    (SELECT CAST(m.node->'$.cte_map' AS VARCHAR) FROM _pit_nodes AS m
     WHERE m.s = j.s AND list_contains(list_transform(json_extract_string(m.node, '$.cte_map.map[*].key'), lambda key: lower(key)), lower(j.relation)) ORDER BY m.id LIMIT 1) AS ctes
  FROM _pit_joins AS j
),
_pit_stated AS (
  SELECT d.id, d.told, {{list_of d.metrics}} AS metrics, {{literal_of d.interval}} AS "interval",
    {{list_of list_distinct(list_transform(d.metrics, lambda name: CASE WHEN name = 'price_usd' THEN 'supply/current_pit' ELSE split_part(name, '#', 1) END))}} AS paths,
    coalesce(', currency := ' || {{literal_of d.currency}}, '') || coalesce(', exchange := ' || {{literal_of d.exchange}}, '')
      || coalesce(', network := ' || {{literal_of d.network}}, '') AS options,
    TRY(json_deserialize_sql(CAST(replace(replace(CAST(d.template AS VARCHAR), '"cte_map":{"map":[]}', '"cte_map":' || coalesce(d.ctes, '{"map":[]}')),
      CAST(d.template->'$.statements[0].node.select_list[2]' AS VARCHAR), coalesce(d.latency, CAST(d.template->'$.statements[0].node.select_list[2]' AS VARCHAR))) AS JSON))) AS decisions,
    list_transform(d.metrics, lambda name: {'name': name, 'interval': list_filter([d.interval], lambda x: x IS NOT NULL), 'asset': CAST([] AS VARCHAR[]),
      'currency': list_filter([d.currency], lambda x: x IS NOT NULL), 'exchange': list_filter([d.exchange], lambda x: x IS NOT NULL),
      'network': list_filter([d.network], lambda x: x IS NOT NULL), 'component': d.component, 'defaults': true, 'everywhere': true}) AS entries
  FROM _pit_decided AS d
),
_pit_named AS (
  SELECT coalesce(list(DISTINCT n.read) FILTER (n.read IS NOT NULL), []) || coalesce(list(DISTINCT n.called) FILTER (n.called IS NOT NULL), []) AS tables,
    coalesce(list(DISTINCT n.text) FILTER (n.text IS NOT NULL), []) AS texts,
    list_has_any(tables, ['points', 'components', 'series']) AS stored,
    coalesce(bool_or(starts_with(n.called, 'count') AND n.s = (SELECT max(s) FROM _pit_trees) AND NOT EXISTS (
      FROM _pit_nodes AS over WHERE over.s = n.s AND over.class = 'SUBQUERY' AND starts_with(n.place, over.place || '.'))), false) AS counts,
    EXISTS (FROM _pit_nodes AS o JOIN _pit_nodes AS c ON c.s = o.s AND c.owner = o.place WHERE starts_with(o.type, 'COMPARE_') AND c.named IN ('t', 'available_at', 'observed_at')) AS times
  FROM _pit_nodes AS n
),
_pit_grids AS (
  SELECT list(coalesce(a.text, a.node->>'$.child.value.value') ORDER BY a.id)[:2] AS ends
  FROM _pit_nodes AS c JOIN _pit_nodes AS a ON a.s = c.s AND a.owner = c.place WHERE c.called = 'calendar' GROUP BY c.s, c.id
),
_pit_said AS (
  SELECT {{said interval}} AS "interval", {{said asset}} AS asset, {{said currency}} AS currency, {{said exchange}} AS exchange, {{said network}} AS network,
    {{said component}}[1] AS component, {{said metric}} AS metric
  FROM _pit_compared
)
SELECT to_json({'tables': named.tables, 'texts': named.texts, 'counts': named.counts,
  'grids': (SELECT coalesce(list(DISTINCT ends), []) FROM _pit_grids), 'metrics': list_transform(
    CASE WHEN len(said.metric) > 0 THEN said.metric WHEN list_contains(named.tables, 'price_usd') THEN ['price_usd']
      WHEN named.stored AND (named.times OR len(said."interval" || said.asset || said.currency || said.exchange || said.network) > 0) THEN ['*'] ELSE CAST([] AS VARCHAR[]) END,
    lambda name: {'name': name, 'interval': said."interval", 'asset': said.asset, 'currency': said.currency, 'exchange': said.exchange, 'network': said.network,
      'component': said.component, 'defaults': NOT named.stored, 'everywhere': said.component IS NOT NULL, 'times': named.times}),
  'joins': (SELECT coalesce(list({'metrics': one.entries, 'extent': {{extent_text}}, 'beyond': CASE WHEN one.told THEN {{beyond_text}} END} ORDER BY one.id), []) FROM _pit_stated AS one)}) AS asked
FROM _pit_named AS named, _pit_said AS said;
COMMENT ON MACRO TABLE question_asked IS 'question_asked(statements [, parameters]): what SQL statements ask, by their words, one row; question_notes takes it. The doors of pitlake ask it.';
