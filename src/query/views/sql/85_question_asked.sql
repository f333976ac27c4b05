-- question_asked: what the statements of a script ask, by their words; `question_notes` takes it.
-- columns: asked, one row of JSON: tables (views, macros and functions that they read), texts (their constants), counts (whether
--   the last one counts), grids (the two ends of each calendar), members (what columns of the universe are compared with), metrics (what a WHERE compares the columns of points with), joins (of each call of a join
--   `metrics`, its options as they were given, whether decisions later than what is settled get a value, and `decisions`: the statement that gives asset, ts and latency of each).
-- law: none; it reads nothing. `parameters` is JSON of the texts that stand for $1 or $name. It knows the trees of DuckDB 1.5 and 2.0.
--   `decisions` is the caller's own relation, written anew from its tree: whoever runs it judges it as any statement of a caller.
CREATE OR REPLACE MACRO question_asked(statements, parameters := '{}') AS TABLE
-- One document of all statements: a tree beside each of its nodes would be stored as often as it has nodes.
WITH _pit_trees AS (
  SELECT n.id, n.fullkey, n.value, CAST(regexp_extract(n.fullkey, '^\$\[(\d+)\]', 1) AS BIGINT) + 1 AS s
  FROM json_tree(to_json(list_transform(CAST(statements AS VARCHAR[]), lambda one:
    json_serialize_sql(regexp_replace(one, '^\s*CREATE\s+(OR\s+REPLACE\s+)?TEMP(ORARY)?\s+(TABLE|VIEW)\s+\S+\s+AS\b', '', 'i'))))) AS n
  WHERE n.type = 'OBJECT'
),
_pit_nodes AS MATERIALIZED (
  SELECT n.s, n.id, n.fullkey AS place, regexp_extract(n.fullkey, '^(.*)\.(left|right|input|children\[\d+\]|arguments\[\d+\]\.expression)$', 1) AS owner,
    n.value AS node, n.value->>'$.class' AS class, n.value->>'$.type' AS type, lower(n.value->>'$.alias') AS alias, lower(n.value->>'$.function_name') AS called,
    lower(n.value->>'$.column_names[#-1]') AS named, CASE n.value->>'$.type' WHEN 'BASE_TABLE' THEN lower(n.value->>'$.table_name') END AS read,
    CASE n.value->>'$.class' WHEN 'PARAMETER' THEN json_extract_string(CAST(parameters AS JSON), '$."' || (n.value->>'$.identifier') || '"')
      WHEN 'CONSTANT' THEN CASE WHEN n.value->>'$.literal.kind' = 'STRING' THEN n.value->>'$.literal.text'
        WHEN json_type(n.value, '$.value.value') = 'VARCHAR' THEN n.value->>'$.value.value' END END AS text
  FROM _pit_trees AS n
),
_pit_compared AS MATERIALIZED (
  SELECT c.named, v.text, o.id FROM _pit_nodes AS o JOIN _pit_nodes AS c ON c.s = o.s AND c.owner = o.place JOIN _pit_nodes AS v ON v.s = o.s AND v.owner = o.place
  WHERE o.type IN ('COMPARE_EQUAL', 'COMPARE_IN') AND c.named IS NOT NULL AND v.text IS NOT NULL
),
_pit_calls AS (
  SELECT s, id, place, called, {'pit_join': ['decisions', 'metric', 'interval'], 'pit_long': ['decisions', 'metric', 'interval'],
    'pit_window': ['decisions', 'metric', 'interval', 'n'], 'resample': ['metric', 'interval', 'to_interval', 'agg'], 'bars': ['metric', 'interval', 'to_interval']} AS parameters
  FROM _pit_nodes WHERE called IN ('pit_join', 'pit_long', 'pit_window', 'resample', 'bars')
),
_pit_given AS (
  SELECT c.s, c.id, a.id AS n, a.node, a.place, coalesce(a.text, a.named) AS text,
    CASE a.alias WHEN 'metrics' THEN 'metric' WHEN 'from_interval' THEN 'interval' ELSE nullif(a.alias, '') END AS own,
    CASE c.called WHEN 'resample' THEN c.parameters.resample WHEN 'bars' THEN c.parameters.bars WHEN 'pit_window' THEN c.parameters.pit_window ELSE c.parameters.pit_join END AS parameters
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
    any_value(text) FILTER (name = 'component') AS component, coalesce(any_value(text) FILTER (name = 'unresolved'), '') <> 'null' AS answers_unsettled,
    any_value(CAST(node AS VARCHAR)) FILTER (name = 'latency') AS latency
  FROM _pit_arguments GROUP BY s, id
),
-- The tree of a constant statement, cut where text of a caller is put in: that text is never searched for a place.
-- DuckDB 2.0 names the relation twice.
_pit_template AS MATERIALIZED (
  SELECT split_part(text, '"cte_map":{"map":[]}', 1) || '"cte_map":' AS before_ctes, latency,
    split_part(split_part(text, '"cte_map":{"map":[]}', 2), latency, 1) AS before_latency,
    string_split(split_part(text, latency, 2), '"pit_relation"') AS around_relation
  FROM (SELECT CAST(tree AS VARCHAR) AS text, CAST(tree->'$.statements[0].node.select_list[2]' AS VARCHAR) AS latency
    FROM (SELECT json_serialize_sql('SELECT asset, ts, NULL AS latency FROM pit_relation') AS tree))
),
_pit_decided AS (
  SELECT j.*,
    (SELECT coalesce(list(DISTINCT x.text ORDER BY x.text), []) FROM _pit_nodes AS x WHERE x.s = j.s AND x.text IS NOT NULL AND starts_with(x.place || '.', j.metric_place || '.')) AS metrics,
    (SELECT CAST(m.node->'$.cte_map' AS VARCHAR) FROM _pit_nodes AS m
     WHERE m.s = j.s AND list_contains(list_transform(json_extract_string(m.node, '$.cte_map.map[*].key'), lambda key: lower(key)), lower(j.relation)) ORDER BY m.id LIMIT 1) AS ctes
  FROM _pit_joins AS j
),
_pit_stated AS (
  SELECT d.id, {'metrics': list_transform(d.metrics, lambda name: {'name': name, 'interval': list_filter([d.interval], lambda x: x IS NOT NULL), 'asset': CAST([] AS VARCHAR[]),
      'currency': list_filter([d.currency], lambda x: x IS NOT NULL), 'exchange': list_filter([d.exchange], lambda x: x IS NOT NULL),
      'network': list_filter([d.network], lambda x: x IS NOT NULL), 'component': d.component, 'defaults': true, 'everywhere': true}),
    'interval': d.interval, 'currency': d.currency, 'exchange': d.exchange, 'network': d.network, 'answers_unsettled': d.answers_unsettled,
    'decisions': TRY(json_deserialize_sql(CAST(t.before_ctes || coalesce(d.ctes, '{"map":[]}') || t.before_latency || coalesce(d.latency, t.latency)
      || list_reduce(t.around_relation, lambda before, behind: before || CAST(to_json(d.relation) AS VARCHAR) || behind) AS JSON)))} AS join_asked
  FROM _pit_decided AS d, _pit_template AS t
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
_pit_members AS (
  SELECT list(DISTINCT {'column': c.named, 'value': c.text}) AS compared FROM _pit_compared AS c
  WHERE c.named IN ('status', 'symbol', 'name', 'isin', 'issuer_name', 'issuer_status', 'jurisdiction', 'asset_name', 'asset_class', 'ticker')
    AND EXISTS (FROM _pit_nodes AS n WHERE n.read = 'universe' OR n.called = 'pit_universe')
),
_pit_said AS (
  SELECT {{said interval}} AS "interval", {{said asset}} AS asset, {{said currency}} AS currency, {{said exchange}} AS exchange, {{said network}} AS network,
    {{said component}}[1] AS component, {{said metric}} AS metric
  FROM _pit_compared
)
SELECT to_json({'tables': named.tables, 'texts': named.texts, 'counts': named.counts,
  'members': (SELECT coalesce(compared, []) FROM _pit_members), 'grids': (SELECT coalesce(list(DISTINCT ends), []) FROM _pit_grids), 'metrics': list_transform(
    CASE WHEN len(said.metric) > 0 THEN said.metric WHEN list_contains(named.tables, 'price_usd') THEN ['price_usd']
      WHEN named.stored AND (named.times OR len(said."interval" || said.asset || said.currency || said.exchange || said.network) > 0) THEN ['*'] ELSE CAST([] AS VARCHAR[]) END,
    lambda name: {'name': name, 'interval': said."interval", 'asset': said.asset, 'currency': said.currency, 'exchange': said.exchange, 'network': said.network,
      'component': said.component, 'defaults': NOT named.stored, 'everywhere': said.component IS NOT NULL, 'times': named.times}),
  'joins': (SELECT coalesce(list(one.join_asked ORDER BY one.id), []) FROM _pit_stated AS one)}) AS asked
FROM _pit_named AS named, _pit_said AS said;
COMMENT ON MACRO TABLE question_asked IS 'question_asked(statements [, parameters]): what SQL statements query, read from their words, one row; question_notes takes it. The interfaces of pitlake use it for their notes.';
