-- components: the numeric and null leaves of object and array values, one row each.
-- law: L1, L7. component is a JSON pointer (RFC 6901) into the value. The value is opened at once, its parts where they
--   are containers: lists of plain values at once, all others in rounds that open all containers one level; there are as
--   many rounds as the structure has brackets (where it is uniform, else the text itself), at most 64, the deepest
--   value that is stored. Pointers are made behind that, and not for counts. Filters on the dimensions and on t reach the Parquet scan.
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
            CASE WHEN contains(CAST(json_structure(part.value) AS VARCHAR), '"JSON"') THEN part.value ELSE CAST(json_structure(part.value) AS VARCHAR) END,
            '[^{\[]', '', 'g')))),
          lambda n: CAST([] AS STRUCT(pointer VARCHAR, value VARCHAR)[])),
        lambda nodes, again: CASE
          WHEN len(list_filter(nodes, lambda node: node.value[1] IN ('{', '['))) = 0 THEN nodes
          ELSE flatten(list_transform(nodes, lambda node: CASE node.value[1]
            WHEN '{' THEN CAST(list_transform(map_entries(from_json(node.value, '"MAP(VARCHAR, JSON)"')), lambda entry:
              {'pointer': node.pointer || '/' || replace(replace(entry.key, '~', '~0'), '/', '~1'), 'value': entry.value})
              AS STRUCT(pointer VARCHAR, value VARCHAR)[])
            WHEN '[' THEN CAST(list_transform(from_json(node.value, '["JSON"]'), lambda item, place:
              {'pointer': node.pointer || '/' || (place - 1), 'value': item}) AS STRUCT(pointer VARCHAR, value VARCHAR)[])
            ELSE [node] END)) END,
        CAST([{'pointer': '', 'value': part.value}] AS STRUCT(pointer VARCHAR, value VARCHAR)[])) END) AS leaf
  FROM (
    SELECT * EXCLUDE (o), unnest(CASE o[1]
        WHEN '{' THEN CAST(map_entries(from_json(o, '"MAP(VARCHAR, JSON)"')) AS STRUCT("key" VARCHAR, "value" VARCHAR)[])
        WHEN '[' THEN CAST(list_transform(from_json(o, '["JSON"]'), lambda item, place: {'key': place - 1, 'value': item})
          AS STRUCT("key" VARCHAR, "value" VARCHAR)[])
        ELSE [CAST({'key': NULL, 'value': o} AS STRUCT("key" VARCHAR, "value" VARCHAR))] END) AS part
    FROM ({{clocked}}) AS points
    WHERE o IS NOT NULL
  )
)
WHERE (leaf.value IS NULL OR regexp_matches(leaf.value, '^-?[0-9]')){{clocked_too}};
COMMENT ON VIEW components IS 'Leaves of object and array values: one row per numeric or null leaf. Text and booleans have no row; they are in points.o.';
{{series_comments components}}
COMMENT ON COLUMN components.t IS 'start of the interval that the point describes';
COMMENT ON COLUMN components.available_at IS 'earliest time at which the component could be known: that of its point, except for components of user data that have their own availability rule';
COMMENT ON COLUMN components.observed_at IS 'when this lake first stored the point';
COMMENT ON COLUMN components.component IS 'JSON pointer (RFC 6901) into the value, with the leading slash: /1w, /0/price';
COMMENT ON COLUMN components.v IS 'the leaf as a double; NULL for a null leaf';
COMMENT ON COLUMN components.basis IS 'source of available_at';
