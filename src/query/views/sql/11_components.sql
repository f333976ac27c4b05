-- components: one row for each numeric or null leaf of an object or array value.
-- columns: metric, asset, interval, currency, exchange, network, t, available_at, observed_at, component, v, basis.
-- law: L1, L7. A component is known when its point is. `component` is a JSON pointer (RFC 6901) into the value.
--   How it is unpacked: the inner query splits the value into its parts. A list of plain values is unpacked at once.
--   Every other part is unpacked in rounds, and each round opens all containers one level.
--   The number of rounds is the number of brackets in the structure, or in the text if the structure is not uniform.
--   It is at most 64, the deepest value that pitlake stores.
--   Pointers are built last, and not for counts. Filters on the dimensions and on t reach the Parquet scan.
CREATE OR REPLACE VIEW components AS
SELECT metric, asset, "interval", currency, exchange, network, t, available_at, observed_at,
  coalesce('/' || replace(replace(part.key, '~', '~0'), '/', '~1'), '') || leaf.pointer AS component,
  TRY_CAST(leaf.value AS DOUBLE) AS v, basis
FROM (
  SELECT *, unnest(CASE
      WHEN part.value[1] NOT IN ('{', '[') OR part.value IS NULL
        THEN [CAST({'pointer': '', 'value': part.value} AS STRUCT(pointer VARCHAR, value VARCHAR))]
      WHEN part.value[1] = '[' AND NOT regexp_matches(part.value[2:], '[{\[]')
        THEN CAST(list_transform(from_json(part.value, '["JSON"]'), lambda item, place:
          {'pointer': '/' || (place - 1), 'value': item}) AS STRUCT(pointer VARCHAR, value VARCHAR)[])
      ELSE list_reduce(
        list_transform(
          range(least(64, length(regexp_replace(
            CASE WHEN contains(CAST(json_structure(part.value) AS VARCHAR), '"JSON"')
              THEN part.value
              ELSE CAST(json_structure(part.value) AS VARCHAR) END,
            '[^{\[]', '', 'g')))),
          lambda n: CAST([] AS STRUCT(pointer VARCHAR, value VARCHAR)[])),
        lambda nodes, round_number: CASE
          WHEN len(list_filter(nodes, lambda node: node.value[1] IN ('{', '['))) = 0 THEN nodes
          ELSE flatten(list_transform(nodes, lambda node: CASE node.value[1]
            WHEN '{' THEN CAST(list_transform(map_entries(from_json(node.value, '"MAP(VARCHAR, JSON)"')), lambda entry:
              {'pointer': node.pointer || '/' || replace(replace(entry.key, '~', '~0'), '/', '~1'),
               'value': entry.value})
              AS STRUCT(pointer VARCHAR, value VARCHAR)[])
            WHEN '[' THEN CAST(list_transform(from_json(node.value, '["JSON"]'), lambda item, place:
              {'pointer': node.pointer || '/' || (place - 1), 'value': item})
              AS STRUCT(pointer VARCHAR, value VARCHAR)[])
            ELSE [node] END)) END,
        CAST([{'pointer': '', 'value': part.value}] AS STRUCT(pointer VARCHAR, value VARCHAR)[])) END) AS leaf
  FROM (
    SELECT * EXCLUDE (o), unnest(CASE o[1]
        WHEN '{' THEN CAST(map_entries(from_json(o, '"MAP(VARCHAR, JSON)"'))
          AS STRUCT("key" VARCHAR, "value" VARCHAR)[])
        WHEN '[' THEN CAST(list_transform(from_json(o, '["JSON"]'), lambda item, place:
          {'key': place - 1, 'value': item})
          AS STRUCT("key" VARCHAR, "value" VARCHAR)[])
        ELSE [CAST({'key': NULL, 'value': o} AS STRUCT("key" VARCHAR, "value" VARCHAR))] END) AS part
    FROM ({{points_by_clock}}) AS points
    WHERE o IS NOT NULL
  )
)
WHERE (leaf.value IS NULL OR regexp_matches(leaf.value, '^-?[0-9]')){{clock_condition}};
COMMENT ON VIEW components IS 'Leaves of object and array values: one row per numeric or null leaf. Text and booleans have no row; they are in points.o.';
{{series_comments components}}
COMMENT ON COLUMN components.t IS 'start of the interval that the point describes';
COMMENT ON COLUMN components.available_at IS 'earliest time at which the component could be known: that of its point, except for components of user data that have their own availability rule';
COMMENT ON COLUMN components.observed_at IS 'when this lake first stored the point';
COMMENT ON COLUMN components.component IS 'JSON pointer (RFC 6901) into the value, with the leading slash: /1w, /0/price';
COMMENT ON COLUMN components.v IS 'the leaf as a double; NULL for a null leaf';
COMMENT ON COLUMN components.basis IS 'source of available_at';
