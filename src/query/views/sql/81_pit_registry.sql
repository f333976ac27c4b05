-- pit_registry: every row of a relation with asset and ts, once, with what the registry knew at ts of its product.
-- columns: those of the caller, then the columns of universe.
-- reads: products name symbol isin status issuer_id asset_id, issuers name status jurisdiction, assets name asset_class
--   ticker, deployments product_id chain_id address status verification_status.
-- law: L1. The product is the one that `product` names, an expression over the caller's columns; where that is NULL it is
--   what links had for asset at ts. Of several products a text names each different value, a list contains what any has,
--   and an instant is the latest. Rows without a product are kept with NULL.
CREATE OR REPLACE MACRO pit_registry(decisions, product := NULL) AS TABLE
WITH {{part registry_start}},
_pit_decisions AS MATERIALIZED (
  SELECT row_number() OVER () AS _pit_row, yours.*, {{utc yours.ts}} AS _pit_ts, CAST(yours.asset AS VARCHAR) AS _pit_asset,
    CASE WHEN {{registry_backfill}} THEN greatest({{utc yours.ts}}, (SELECT known_since FROM _pit_start))
      ELSE {{utc yours.ts}} END AS _pit_at, CAST(product AS VARCHAR) AS _pit_product
  FROM query_table(decisions) AS yours
),
_pit_clash AS (
  SELECT product_id, name, symbol, isin, status, issuer_id, issuer_name, issuer_status, jurisdiction, asset_id, asset_name,
    asset_class, ticker, deployments, valid_from, first_seen, assumed, chains
  FROM query_table(decisions) AS yours, (SELECT NULL AS product_id, NULL AS name, NULL AS symbol, NULL AS isin, NULL AS status,
    NULL AS issuer_id, NULL AS issuer_name, NULL AS issuer_status, NULL AS jurisdiction, NULL AS asset_id, NULL AS asset_name,
    NULL AS asset_class, NULL AS ticker, NULL AS deployments, NULL AS valid_from, NULL AS first_seen, NULL AS assumed,
    NULL AS chains) AS pit_registry
  LIMIT 0
),
{{part universe_states}},
-- A link counts from the instant on at which its asset could be known to be one: by a mapping always, by a contract or symbol
-- from the first listing with it on, and where the asset's id is the symbol from its first point on, too.
_pit_listings AS (
  SELECT id, symbol, addresses, CASE WHEN {{registry_backfill}} AND observed_at = min(observed_at) OVER (PARTITION BY id)
      THEN CAST('-infinity' AS TIMESTAMPTZ) ELSE observed_at END AS observed_at
  FROM {{files metric_assets}}
  WHERE id IN (SELECT _pit_asset FROM _pit_decisions)
    AND ({{unset as_of}} OR {{registry_backfill}} OR observed_at <= {{as_of}})
    AND ({{unset observed_as_of}} OR observed_at <= {{observed_as_of}})
),
_pit_contracts_listed AS (
  SELECT id, {{chain_of contract.chain_id}} AS chain, {{contract_of contract.address}} AS address, min(observed_at) AS known_at
  FROM (
    SELECT id, observed_at, unnest(from_json(addresses, '[{"chain_id": "VARCHAR", "address": "VARCHAR"}]')) AS contract
    FROM _pit_listings
  ) GROUP BY ALL
),
_pit_symbols_listed AS (
  SELECT id, min(known_at) AS known_at FROM (
    SELECT id, min(observed_at) AS known_at FROM (
      SELECT id, observed_at, symbol, last_value(symbol) OVER (PARTITION BY id ORDER BY observed_at
        ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS last_symbol FROM _pit_listings
    ) WHERE symbol IS NOT DISTINCT FROM last_symbol GROUP BY id
    UNION ALL
    SELECT asset, min(available_at) FROM ({{points}}) AS points
    WHERE asset IN (SELECT _pit_asset FROM _pit_decisions)
      AND asset NOT IN (SELECT id FROM _pit_listings WHERE lower(symbol) <> lower(id)) GROUP BY asset
  ) GROUP BY id
),
_pit_links AS (
  SELECT l.metric_asset, l.product_id, l.valid_to, greatest(l.valid_from, CASE l.basis
      WHEN 'mapping' THEN l.valid_from WHEN 'address' THEN c.known_at ELSE s.known_at END) AS valid_from
  FROM ({{view links}}) AS l
  LEFT JOIN _pit_contracts_listed AS c ON l.basis = 'address' AND c.id = l.metric_asset AND c.chain = l.chain_id AND c.address = l.address
  LEFT JOIN _pit_symbols_listed AS s ON l.basis = 'symbol' AND s.id = l.metric_asset
  WHERE l.product_id IS NOT NULL
),
_pit_pairs AS (
  SELECT _pit_row, _pit_at, _pit_ts, _pit_product AS product_id FROM _pit_decisions WHERE _pit_product IS NOT NULL
  UNION
  SELECT d._pit_row, d._pit_at, d._pit_ts, l.product_id FROM _pit_decisions AS d
  JOIN _pit_links AS l ON l.metric_asset = d._pit_asset AND l.valid_from <= d._pit_ts AND d._pit_ts < l.valid_to
  WHERE d._pit_product IS NULL
),
_pit_known AS (
  SELECT p._pit_row, {{each s.product_id}} AS product_id, {{each s.name}} AS name, {{each s.symbol}} AS symbol,
    {{each s.isin}} AS isin, {{each s.status}} AS status, {{each s.issuer_id}} AS issuer_id, {{each s.issuer_name}} AS issuer_name,
    {{each s.issuer_status}} AS issuer_status, {{each s.jurisdiction}} AS jurisdiction, {{each s.asset_id}} AS asset_id,
    {{each s.asset_name}} AS asset_name, {{each s.asset_class}} AS asset_class, {{each s.ticker}} AS ticker,
    flatten(list(s.deployments ORDER BY s.product_id)) AS deployments, max(s.valid_from) AS valid_from,
    max(s.first_seen) AS first_seen, bool_or(p._pit_ts < p._pit_at) AS assumed,
    list_sort(list_distinct(flatten(list(s.chains)))) AS chains
  FROM _pit_pairs AS p
  JOIN _pit_states AS s ON s.product_id = p.product_id AND s._pit_since <= p._pit_at AND p._pit_at < s._pit_ended
  GROUP BY p._pit_row
)
SELECT d.* EXCLUDE (_pit_row, _pit_ts, _pit_asset, _pit_at, _pit_product), known.* EXCLUDE (_pit_row)
FROM _pit_decisions AS d LEFT JOIN _pit_known AS known ON known._pit_row = d._pit_row
WHERE NOT EXISTS (FROM _pit_clash);
COMMENT ON MACRO TABLE pit_registry IS 'pit_registry(decisions [, product := column]): each row of a table or view with asset and ts, with the columns of universe as known at ts for the product that the asset was linked to then, or that the column names.';
