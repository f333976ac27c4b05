-- universe: products with their issuer, asset, contracts and status as known at as_of.
-- columns: product_id, name, symbol, isin, status, issuer_id, issuer_name, issuer_status, jurisdiction, asset_id,
--   asset_name, asset_class, ticker, deployments, valid_from, first_seen, assumed, chains.
-- reads: products name symbol isin status issuer_id asset_id, issuers name status jurisdiction, assets name
--   asset_class ticker, deployments product_id chain_id address status verification_status.
-- law: L1. Retired products stay in the universe. Removed products are in it at the dates when they were known.
CREATE OR REPLACE VIEW universe AS
SELECT product.id AS product_id, product.name, product.symbol, product.isin, product.status, product.issuer_id,
  issuer.name AS issuer_name, issuer.status AS issuer_status, issuer.jurisdiction, product.asset_id,
  asset.name AS asset_name, asset.asset_class, asset.ticker,
  coalesce(contracts.deployments, CAST([] AS STRUCT(id VARCHAR, chain_id VARCHAR, address VARCHAR, status VARCHAR,
    verification_status VARCHAR)[])) AS deployments,
  product.valid_from, first_version.first_seen, product.assumed,
  coalesce(contracts.chains, CAST([] AS VARCHAR[])) AS chains
FROM ({{view products}}) AS product
LEFT JOIN ({{view issuers}}) AS issuer ON issuer.id = product.issuer_id
LEFT JOIN ({{view assets}}) AS asset ON asset.id = product.asset_id
LEFT JOIN (
  SELECT product_id, list({id: id, chain_id: chain_id, address: address, status: status,
    verification_status: verification_status} ORDER BY id) AS deployments, {{distinct_list chain_id}} AS chains
  FROM ({{view deployments}}) GROUP BY product_id
) AS contracts ON contracts.product_id = product.id
LEFT JOIN (SELECT id, min("at") AS first_seen FROM {{files history.products}} GROUP BY id) AS first_version
  ON first_version.id = product.id;
COMMENT ON VIEW universe IS 'Tokenized products as known at as_of; retired ones included.';
COMMENT ON COLUMN universe.product_id IS 'id of the product';
COMMENT ON COLUMN universe.name IS 'its name, as the record says';
COMMENT ON COLUMN universe.symbol IS 'its symbol';
COMMENT ON COLUMN universe.isin IS 'its ISIN';
COMMENT ON COLUMN universe.status IS 'active, inactive, or a different word of the registry';
COMMENT ON COLUMN universe.issuer_id IS 'id of its issuer';
COMMENT ON COLUMN universe.issuer_name IS 'name of its issuer';
COMMENT ON COLUMN universe.issuer_status IS 'status of its issuer';
COMMENT ON COLUMN universe.jurisdiction IS 'country of its issuer';
COMMENT ON COLUMN universe.asset_id IS 'id of the asset behind it';
COMMENT ON COLUMN universe.asset_name IS 'name of the asset';
COMMENT ON COLUMN universe.asset_class IS 'class of the asset';
COMMENT ON COLUMN universe.ticker IS 'ticker of the asset';
COMMENT ON COLUMN universe.deployments IS 'its contracts: a list of {id, chain_id, address, status, verification_status}';
COMMENT ON COLUMN universe.valid_from IS 'the poll that returned this state of the product';
COMMENT ON COLUMN universe.first_seen IS 'the poll that first showed the product';
COMMENT ON COLUMN universe.assumed IS 'true if registry_backfill added the row: it is from the first snapshot and was not known at this as_of';
COMMENT ON COLUMN universe.chains IS 'ids of the chains of its contracts, each once, sorted';
