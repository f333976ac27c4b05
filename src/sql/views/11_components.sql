-- components: the numeric and null leaves of object and array values, one row each.
-- columns: metric, asset, interval, currency, exchange, network, t, available_at, observed_at, component, v, basis.
-- law: L1, L7. component is a JSON pointer (RFC 6901) into the value. Each round opens all containers one level; there
--   are as many rounds as the value's structure has brackets (where it is uniform, else the value itself), at most 64,
--   the deepest value that is stored. Filters on the dimensions and on t reach the Parquet scan.
CREATE OR REPLACE VIEW components AS
SELECT metric, asset, "interval", currency, exchange, network, t, available_at, observed_at,
  leaf.pointer AS component, TRY_CAST(leaf.value AS DOUBLE) AS v, basis
FROM (
  SELECT *, unnest(list_reduce(
      list_transform(
        range(least(64, length(regexp_replace(
          CASE WHEN contains(CAST(json_structure(o) AS VARCHAR), '"JSON"') THEN o ELSE CAST(json_structure(o) AS VARCHAR) END,
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
      CAST([{'pointer': '', 'value': o}] AS STRUCT(pointer VARCHAR, value VARCHAR)[]))) AS leaf
  FROM ({{points}}) AS points
  WHERE o IS NOT NULL
)
WHERE leaf.value IS NULL OR regexp_matches(leaf.value, '^-?[0-9]');
COMMENT ON VIEW components IS 'Leaves of object and array values: one row per numeric or null leaf. Text and booleans stay in points.o.';
COMMENT ON COLUMN components.metric IS 'path of the endpoint';
COMMENT ON COLUMN components.asset IS 'asset id of the metrics API';
COMMENT ON COLUMN components."interval" IS '10m, 1h, 24h, 1w or 1month';
COMMENT ON COLUMN components.currency IS 'native or usd; NULL where the endpoint takes none';
COMMENT ON COLUMN components.exchange IS 'exchange id; NULL where the endpoint takes none';
COMMENT ON COLUMN components.network IS 'network; NULL where the endpoint takes none';
COMMENT ON COLUMN components.t IS 'start of the interval that the point describes';
COMMENT ON COLUMN components.available_at IS 'earliest instant at which the point could be known';
COMMENT ON COLUMN components.observed_at IS 'when this lake first held the point';
COMMENT ON COLUMN components.component IS 'JSON pointer (RFC 6901) into the value, with the leading slash: /1w, /0/price';
COMMENT ON COLUMN components.v IS 'the leaf as a double; NULL for a null leaf';
COMMENT ON COLUMN components.basis IS 'where available_at comes from';
