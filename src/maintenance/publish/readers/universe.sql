-- universe in SQL that every engine understands: the products known at an instant, with their issuer and asset as
--   known then.
-- columns: product_id, name, symbol, isin, status, issuer_id, issuer_name, issuer_status, jurisdiction, asset_id,
--   asset_name, asset_class, ticker, valid_from.
-- law: L1. At the time of a poll the versions that it returned are known, and the versions that it ended are not.
--   Before the first poll no product is known.
SELECT p.id AS product_id, p.name AS name, p.symbol AS symbol, p.isin AS isin, p.status AS status,
  p.issuer_id AS issuer_id, i.name AS issuer_name, i.status AS issuer_status, i.jurisdiction AS jurisdiction,
  p.asset_id AS asset_id, a.name AS asset_name, a.asset_class AS asset_class, a.ticker AS ticker,
  p.valid_from AS valid_from
FROM (
  {{known products}}
) AS p
LEFT JOIN (
  {{known issuers}}
) AS i ON i.id = p.issuer_id
LEFT JOIN (
  {{known assets}}
) AS a ON a.id = p.asset_id
