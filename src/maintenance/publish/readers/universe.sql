-- universe in the words of every SQL engine: the products known at an instant, with issuer and asset as known then.
-- columns: product_id, name, symbol, isin, status, issuer_id, issuer_name, issuer_status, jurisdiction, asset_id,
--   asset_name, asset_class, ticker, valid_from.
-- law: L1. At the instant of a poll its versions are known, those that it ended are not; before the first there are none.
SELECT p.id AS product_id, p.name AS name, p.symbol AS symbol, p.isin AS isin, p.status AS status,
  p.issuer_id AS issuer_id, i.name AS issuer_name, i.status AS issuer_status, i.jurisdiction AS jurisdiction,
  p.asset_id AS asset_id, a.name AS asset_name, a.asset_class AS asset_class, a.ticker AS ticker, p.valid_from AS valid_from
FROM (
  {{known products}}
) AS p
LEFT JOIN (
  {{known issuers}}
) AS i ON i.id = p.issuer_id
LEFT JOIN (
  {{known assets}}
) AS a ON a.id = p.asset_id
