-- question_asked: a description of what the statements of a script query, read from their parse trees.
--   `question_notes` takes it.
-- columns: asked, one row of JSON with these keys:
--   tables: the views, macros and functions that the statements read. texts: their constants. counts: whether the
--   last statement counts.
--   grids: the two ends of each calendar. members: the comparisons with columns of the universe. metrics: the
--   comparisons with columns of points.
--   joins: for each call of a join its `metrics`, its options as given, and whether unresolved decisions get a value.
--   Its `decisions` is the statement that returns asset, ts and latency of each decision.
-- law: none; the macro reads no data. `parameters` is JSON of the texts for $1 or $name. It knows the parse trees of
--   DuckDB 1.5 and 2.0.
--   `decisions` is the caller's relation, written again from its parse tree. Whoever runs it must check it like any
--   statement of a caller.
CREATE OR REPLACE MACRO question_asked(statements, parameters := '{}') AS TABLE
-- All statements are one document. If each node carried its whole tree, a tree would be stored once for each node.
WITH _pit_trees AS (
  SELECT n.id, n.fullkey, n.value, CAST(regexp_extract(n.fullkey, '^\$\[(\d+)\]', 1) AS BIGINT) + 1 AS statement
  FROM json_tree(to_json(list_transform(CAST(statements AS VARCHAR[]), lambda statement_text:
    json_serialize_sql(regexp_replace(
      statement_text, '^\s*CREATE\s+(OR\s+REPLACE\s+)?TEMP(ORARY)?\s+(TABLE|VIEW)\s+\S+\s+AS\b', '', 'i'))))) AS n
  WHERE n.type = 'OBJECT'
),
_pit_nodes AS MATERIALIZED (
  SELECT n.statement, n.id, n.fullkey AS path,
    regexp_extract(n.fullkey,
      '^(.*)\.(left|right|input|children\[\d+\]|arguments\[\d+\]\.expression)$', 1) AS parent_path,
    n.value AS node, n.value->>'$.class' AS class, n.value->>'$.type' AS type, lower(n.value->>'$.alias') AS alias,
    lower(n.value->>'$.function_name') AS function_name,
    lower(n.value->>'$.column_names[#-1]') AS column_name,
    CASE n.value->>'$.type' WHEN 'BASE_TABLE' THEN lower(n.value->>'$.table_name') END AS table_name,
    CASE n.value->>'$.class'
      WHEN 'PARAMETER'
        THEN json_extract_string(CAST(parameters AS JSON), '$."' || (n.value->>'$.identifier') || '"')
      WHEN 'CONSTANT' THEN CASE
        WHEN n.value->>'$.literal.kind' = 'STRING' THEN n.value->>'$.literal.text'
        WHEN json_type(n.value, '$.value.value') = 'VARCHAR' THEN n.value->>'$.value.value' END END AS text
  FROM _pit_trees AS n
),
-- Columns that are compared with a constant.
_pit_compared AS MATERIALIZED (
  SELECT c.column_name, v.text, o.id
  FROM _pit_nodes AS o
  JOIN _pit_nodes AS c ON c.statement = o.statement AND c.parent_path = o.path
  JOIN _pit_nodes AS v ON v.statement = o.statement AND v.parent_path = o.path
  WHERE o.type IN ('COMPARE_EQUAL', 'COMPARE_IN') AND c.column_name IS NOT NULL AND v.text IS NOT NULL
),
-- Calls of the joins, with the names of their positional parameters.
_pit_calls AS (
  SELECT statement, id, path, function_name,
    {'pit_join': ['decisions', 'metric', 'interval'], 'pit_long': ['decisions', 'metric', 'interval'],
      'pit_window': ['decisions', 'metric', 'interval', 'n'], 'resample': ['metric', 'interval', 'to_interval', 'agg'],
      'bars': ['metric', 'interval', 'to_interval']} AS parameter_names
  FROM _pit_nodes
  WHERE function_name IN ('pit_join', 'pit_long', 'pit_window', 'resample', 'bars')
),
_pit_call_arguments AS (
  SELECT c.statement, c.id, a.id AS n, a.node, a.path, coalesce(a.text, a.column_name) AS text,
    CASE a.alias WHEN 'metrics' THEN 'metric' WHEN 'from_interval' THEN 'interval'
      ELSE nullif(a.alias, '') END AS given_name,
    CASE c.function_name WHEN 'resample' THEN c.parameter_names.resample WHEN 'bars' THEN c.parameter_names.bars
      WHEN 'pit_window' THEN c.parameter_names.pit_window ELSE c.parameter_names.pit_join END AS parameter_names
  FROM _pit_calls AS c JOIN _pit_nodes AS a ON a.statement = c.statement AND a.parent_path = c.path
),
-- An argument without a name gets the name of the next parameter that no other argument names.
_pit_named_arguments AS MATERIALIZED (
  SELECT g.*,
    coalesce(g.given_name,
      list_filter(g.parameter_names, lambda name: NOT list_contains(coalesce(o.given_names, []), name))
        [row_number() OVER (PARTITION BY g.statement, g.id, g.given_name IS NULL ORDER BY g.n)]) AS name
  FROM _pit_call_arguments AS g
  LEFT JOIN (
    SELECT statement, id, list(given_name) AS given_names
    FROM _pit_call_arguments WHERE given_name IS NOT NULL GROUP BY ALL
  ) AS o USING (statement, id)
),
_pit_joins AS (
  SELECT statement, id, any_value(text) FILTER (name = 'decisions') AS relation,
    any_value(path) FILTER (name = 'metric') AS metric_path,
    any_value(text) FILTER (name = 'interval') AS "interval", any_value(text) FILTER (name = 'currency') AS currency,
    any_value(text) FILTER (name = 'exchange') AS exchange, any_value(text) FILTER (name = 'network') AS network,
    any_value(text) FILTER (name = 'component') AS component,
    coalesce(any_value(text) FILTER (name = 'unresolved'), '') <> 'null' AS answers_unsettled,
    any_value(CAST(node AS VARCHAR)) FILTER (name = 'latency') AS latency
  FROM _pit_named_arguments
  GROUP BY statement, id
),
-- The parse tree of a constant statement, split where text of the caller goes in. That text itself is never searched.
-- DuckDB 2.0 names the relation twice.
_pit_template AS MATERIALIZED (
  SELECT split_part(text, '"cte_map":{"map":[]}', 1) || '"cte_map":' AS before_ctes, latency,
    split_part(split_part(text, '"cte_map":{"map":[]}', 2), latency, 1) AS before_latency,
    string_split(split_part(text, latency, 2), '"pit_relation"') AS around_relation
  FROM (SELECT CAST(tree AS VARCHAR) AS text, CAST(tree->'$.statements[0].node.select_list[2]' AS VARCHAR) AS latency
    FROM (SELECT json_serialize_sql('SELECT asset, ts, NULL AS latency FROM pit_relation') AS tree))
),
-- Each join with its metrics and the CTEs in which its decisions are defined.
_pit_join_sources AS (
  SELECT j.*,
    (SELECT coalesce(list(DISTINCT x.text ORDER BY x.text), []) FROM _pit_nodes AS x
     WHERE x.statement = j.statement AND x.text IS NOT NULL
       AND starts_with(x.path || '.', j.metric_path || '.')) AS metrics,
    (SELECT CAST(m.node->'$.cte_map' AS VARCHAR) FROM _pit_nodes AS m
     WHERE m.statement = j.statement AND list_contains(
       list_transform(json_extract_string(m.node, '$.cte_map.map[*].key'), lambda key: lower(key)), lower(j.relation))
     ORDER BY m.id LIMIT 1) AS ctes
  FROM _pit_joins AS j
),
_pit_join_descriptions AS (
  SELECT d.id, {
    'metrics': list_transform(d.metrics, lambda name: {'name': name,
      'interval': list_filter([d.interval], lambda x: x IS NOT NULL), 'asset': CAST([] AS VARCHAR[]),
      'currency': list_filter([d.currency], lambda x: x IS NOT NULL),
      'exchange': list_filter([d.exchange], lambda x: x IS NOT NULL),
      'network': list_filter([d.network], lambda x: x IS NOT NULL), 'component': d.component, 'defaults': true,
      'everywhere': true}),
    'interval': d.interval, 'currency': d.currency, 'exchange': d.exchange, 'network': d.network,
    'answers_unsettled': d.answers_unsettled,
    'decisions': TRY(json_deserialize_sql(CAST(
      t.before_ctes || coalesce(d.ctes, '{"map":[]}') || t.before_latency || coalesce(d.latency, t.latency)
      || list_reduce(t.around_relation,
        lambda before, after: before || CAST(to_json(d.relation) AS VARCHAR) || after) AS JSON)))} AS description
  FROM _pit_join_sources AS d, _pit_template AS t
),
-- What all statements use, one row.
_pit_totals AS (
  SELECT coalesce(list(DISTINCT n.table_name) FILTER (n.table_name IS NOT NULL), [])
      || coalesce(list(DISTINCT n.function_name) FILTER (n.function_name IS NOT NULL), []) AS tables,
    coalesce(list(DISTINCT n.text) FILTER (n.text IS NOT NULL), []) AS texts,
    list_has_any(tables, ['points', 'components', 'series']) AS reads_points,
    coalesce(bool_or(
      starts_with(n.function_name, 'count') AND n.statement = (SELECT max(statement) FROM _pit_trees)
      AND NOT EXISTS (
        FROM _pit_nodes AS subquery
        WHERE subquery.statement = n.statement AND subquery.class = 'SUBQUERY'
          AND starts_with(n.path, subquery.path || '.'))), false) AS counts,
    EXISTS (
      FROM _pit_nodes AS o JOIN _pit_nodes AS c ON c.statement = o.statement AND c.parent_path = o.path
      WHERE starts_with(o.type, 'COMPARE_') AND c.column_name IN ('t', 'available_at', 'observed_at')) AS compares_times
  FROM _pit_nodes AS n
),
_pit_grids AS (
  SELECT list(coalesce(a.text, a.node->>'$.child.value.value') ORDER BY a.id)[:2] AS ends
  FROM _pit_nodes AS c JOIN _pit_nodes AS a ON a.statement = c.statement AND a.parent_path = c.path
  WHERE c.function_name = 'calendar'
  GROUP BY c.statement, c.id
),
_pit_members AS (
  SELECT list(DISTINCT {'column': c.column_name, 'value': c.text}) AS compared
  FROM _pit_compared AS c
  WHERE c.column_name IN ('status', 'symbol', 'name', 'isin', 'issuer_name', 'issuer_status', 'jurisdiction',
      'asset_name', 'asset_class', 'ticker')
    AND EXISTS (FROM _pit_nodes AS n WHERE n.table_name = 'universe' OR n.function_name = 'pit_universe')
),
_pit_filters AS (
  SELECT {{compared_values interval}} AS "interval", {{compared_values asset}} AS asset,
    {{compared_values currency}} AS currency, {{compared_values exchange}} AS exchange,
    {{compared_values network}} AS network, {{compared_values component}}[1] AS component,
    {{compared_values metric}} AS metric
  FROM _pit_compared
)
SELECT to_json({'tables': totals.tables, 'texts': totals.texts, 'counts': totals.counts,
  'members': (SELECT coalesce(compared, []) FROM _pit_members),
  'grids': (SELECT coalesce(list(DISTINCT ends), []) FROM _pit_grids),
  'metrics': list_transform(
    CASE
      WHEN len(filters.metric) > 0 THEN filters.metric
      WHEN list_contains(totals.tables, 'price_usd') THEN ['price_usd']
      WHEN totals.reads_points AND (totals.compares_times OR len(filters."interval" || filters.asset
          || filters.currency || filters.exchange || filters.network) > 0) THEN ['*']
      ELSE CAST([] AS VARCHAR[]) END,
    lambda name: {'name': name, 'interval': filters."interval", 'asset': filters.asset, 'currency': filters.currency,
      'exchange': filters.exchange, 'network': filters.network, 'component': filters.component,
      'defaults': NOT totals.reads_points, 'everywhere': filters.component IS NOT NULL,
      'times': totals.compares_times}),
  'joins': (SELECT coalesce(list(joins.description ORDER BY joins.id), [])
    FROM _pit_join_descriptions AS joins)}) AS asked
FROM _pit_totals AS totals, _pit_filters AS filters;
COMMENT ON MACRO TABLE question_asked IS 'question_asked(statements [, parameters]): what SQL statements query, read from their words, one row; question_notes takes it. The interfaces of pitlake use it for their notes.';
