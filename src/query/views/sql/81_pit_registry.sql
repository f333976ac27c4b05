-- pit_registry: every row of a relation with asset and ts, once, with the state of its product that the registry
--   showed at ts.
-- columns: those of the caller, then the columns of universe.
-- reads: products name symbol isin status issuer_id asset_id, issuers name status jurisdiction, assets name
--   asset_class ticker, deployments product_id chain_id address status verification_status.
-- law: L1. The product is the one that `product` names, an expression over the caller's columns. If that is NULL, it
--   is the product to which the asset was linked at ts.
--   If an asset has several products, a text lists each different value, a list contains every item, and a timestamp
--   is the latest.
--   Rows without a product stay, with NULL.
CREATE OR REPLACE MACRO pit_registry(decisions, product := NULL) AS TABLE
WITH {{part registry_start}},
_pit_decisions AS MATERIALIZED (
  SELECT row_number() OVER () AS _pit_row, yours.*, {{utc yours.ts}} AS _pit_ts,
    CAST(yours.asset AS VARCHAR) AS _pit_asset,
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
-- The products of an asset follow the rules of the view links, applied to the listing of the asset as known at ts.
_pit_asset_times AS (
  SELECT DISTINCT _pit_asset AS asset, _pit_ts AS ts, _pit_at AS "at" FROM _pit_decisions
  WHERE _pit_product IS NULL AND _pit_asset IS NOT NULL AND _pit_ts IS NOT NULL
),
_pit_mapping AS (
  SELECT metric_asset, product_id, {{chain_of chain_id}} AS chain, {{contract_of address}} AS contract,
    coalesce(since, TIMESTAMPTZ '-infinity') AS since, coalesce(until, TIMESTAMPTZ 'infinity') AS ended
  FROM {{ledger links}}
),
_pit_listings AS (
  SELECT id, symbol, from_json(addresses, '[{"chain_id": "VARCHAR", "address": "VARCHAR"}]') AS contracts,
    CASE WHEN {{registry_backfill}} AND observed_at = min(observed_at) OVER (PARTITION BY id)
      THEN CAST('-infinity' AS TIMESTAMPTZ) ELSE observed_at END AS known_at
  FROM {{files metric_assets}}
  WHERE id IN (SELECT asset FROM _pit_asset_times)
    AND ({{unset as_of}} OR {{registry_backfill}} OR observed_at <= {{as_of}})
    AND ({{unset observed_as_of}} OR observed_at <= {{observed_as_of}})
),
-- An asset without a listing is known from its first point on, its id then its symbol.
_pit_first_points AS (
  SELECT asset, min(available_at) AS known_at FROM ({{points}}) AS points
  WHERE asset IN (SELECT asset FROM _pit_asset_times) GROUP BY asset
),
_pit_listed AS (
  SELECT a.asset, a.ts, a."at", l.id IS NOT NULL AS listed, l.symbol, coalesce(l.contracts, []) AS contracts
  FROM _pit_asset_times AS a ASOF LEFT JOIN _pit_listings AS l ON l.id = a.asset AND a.ts >= l.known_at
),
_pit_unmapped AS (
  SELECT l.* FROM _pit_listed AS l LEFT JOIN _pit_first_points AS p ON p.asset = l.asset
  WHERE l.asset NOT IN (SELECT metric_asset FROM _pit_mapping) AND (l.listed OR p.known_at <= l.ts)
),
_pit_asset_contracts AS (
  SELECT asset, ts, "at", {{chain_of contract.chain_id}} AS chain, {{contract_of contract.address}} AS contract
  FROM (SELECT asset, ts, "at", unnest(contracts) AS contract FROM _pit_unmapped)
  UNION ALL
  SELECT l.asset, l.ts, l."at", m.chain, m.contract
  FROM _pit_listed AS l JOIN _pit_mapping AS m ON m.metric_asset = l.asset AND m.since <= l.ts AND l.ts < m.ended
),
_pit_direct_links AS (
  SELECT l.asset, l.ts, m.product_id
  FROM _pit_listed AS l JOIN _pit_mapping AS m ON m.metric_asset = l.asset AND m.since <= l.ts AND l.ts < m.ended
  WHERE m.product_id IS NOT NULL
  UNION
  SELECT u.asset, u.ts, c.product_id
  FROM _pit_asset_contracts AS u JOIN _pit_contracts AS c
    ON {{chain_of c.chain_id}} = u.chain
      AND {{contract_of c.address}} = u.contract
    AND c."at" <= u."at" AND u."at" < c.until
  WHERE c.product_id IS NOT NULL
  UNION
  SELECT u.asset, u.ts, p.id
  FROM _pit_unmapped AS u JOIN _pit_products AS p ON lower(p.symbol) = lower(coalesce(u.symbol, u.asset))
    AND p."at" <= u."at" AND u."at" < p.until
  WHERE len(u.contracts) = 0
),
_pit_variant_links AS (
  SELECT u.asset, u.ts, min(p.id) AS product_id
  FROM _pit_unmapped AS u
  JOIN {{ledger symbol_variants}} AS variant
    ON u.listed AND len(u.symbol) > len(variant.metrics) AND ends_with(lower(u.symbol), lower(variant.metrics))
  JOIN _pit_products AS p
    ON lower(p.symbol) = lower(left(u.symbol, len(u.symbol) - len(variant.metrics)) || variant.registry)
    AND p."at" <= u."at" AND u."at" < p.until
  WHERE NOT EXISTS (FROM _pit_direct_links AS d WHERE d.asset = u.asset AND d.ts = u.ts)
  GROUP BY u.asset, u.ts HAVING count(DISTINCT p.id) = 1
),
_pit_row_products AS (
  SELECT _pit_row, _pit_at, _pit_ts, _pit_product AS product_id FROM _pit_decisions WHERE _pit_product IS NOT NULL
  UNION ALL
  SELECT d._pit_row, d._pit_at, d._pit_ts, l.product_id
  FROM _pit_decisions AS d
  JOIN (FROM _pit_direct_links UNION ALL FROM _pit_variant_links) AS l
    ON l.asset = d._pit_asset AND l.ts = d._pit_ts
  WHERE d._pit_product IS NULL
),
_pit_answers AS (
  SELECT p._pit_row, {{distinct_text s.product_id}} AS product_id,
    {{distinct_text s.name}} AS name, {{distinct_text s.symbol}} AS symbol,
    {{distinct_text s.isin}} AS isin, {{distinct_text s.status}} AS status,
    {{distinct_text s.issuer_id}} AS issuer_id, {{distinct_text s.issuer_name}} AS issuer_name,
    {{distinct_text s.issuer_status}} AS issuer_status, {{distinct_text s.jurisdiction}} AS jurisdiction,
    {{distinct_text s.asset_id}} AS asset_id, {{distinct_text s.asset_name}} AS asset_name,
    {{distinct_text s.asset_class}} AS asset_class, {{distinct_text s.ticker}} AS ticker,
    flatten(list(s.deployments ORDER BY s.product_id)) AS deployments, max(s.valid_from) AS valid_from,
    max(s.first_seen) AS first_seen, bool_or(p._pit_ts < p._pit_at) AS assumed,
    list_sort(list_distinct(flatten(list(s.chains)))) AS chains
  FROM _pit_row_products AS p
  JOIN _pit_states AS s ON s.product_id = p.product_id AND s._pit_since <= p._pit_at AND p._pit_at < s._pit_ended
  GROUP BY p._pit_row
)
SELECT d.* EXCLUDE (_pit_row, _pit_ts, _pit_asset, _pit_at, _pit_product), answer.* EXCLUDE (_pit_row)
FROM _pit_decisions AS d LEFT JOIN _pit_answers AS answer ON answer._pit_row = d._pit_row
WHERE NOT EXISTS (FROM _pit_clash);
COMMENT ON MACRO TABLE pit_registry IS 'pit_registry(decisions [, product := column]): each row of a table or view with asset and ts, with the columns of universe as known at ts for the product that the asset was linked to then, or that the column names.';
