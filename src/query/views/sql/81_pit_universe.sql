-- pit_universe: every row of a relation with ts, with the products known at ts: a row per decision and product.
-- columns: those of the caller, then product_id, name, symbol, isin, status, issuer_id, asset_id, valid_from, assumed.
-- reads: products name symbol isin status issuer_id asset_id, issuers name status jurisdiction, assets name asset_class
--   ticker, deployments product_id chain_id address status verification_status.
-- law: L1. At the instant of a poll its versions are known, those that it ended are not. Rows without a product are not
--   kept: before the first snapshot nothing is known, unless registry_backfill lets that snapshot stand in. The second
--   argument is a condition on the columns of universe, each as it was known at ts.
CREATE OR REPLACE MACRO pit_universe(decisions) AS TABLE (
WITH {{part universe_asked}},
_pit_versions AS (
  SELECT id AS product_id, name, symbol, isin, status, issuer_id, asset_id, "at" AS valid_from, op,
    lead("at") OVER (PARTITION BY id ORDER BY "at") AS _pit_until
  FROM {{files history.products}}
  WHERE ({{unset as_of}} OR "at" <= CASE WHEN {{registry_backfill}}
      THEN greatest({{as_of}}, (SELECT known_since FROM _pit_start)) ELSE {{as_of}} END)
    AND ({{unset observed_as_of}} OR "at" <= {{observed_as_of}})
)
SELECT d.* EXCLUDE (_pit_ts, _pit_at), v.product_id, v.name, v.symbol, v.isin, v.status, v.issuer_id, v.asset_id,
  v.valid_from, d._pit_ts < d._pit_at AS assumed
FROM _pit_decisions AS d
JOIN _pit_versions AS v
  ON v.valid_from <= d._pit_at AND d._pit_at < coalesce(v._pit_until, CAST('infinity' AS TIMESTAMPTZ))
WHERE v.op IS NOT NULL AND NOT EXISTS (FROM _pit_clash)
), (decisions, members) AS TABLE (
WITH {{part universe_asked}},
_pit_cut AS (
  SELECT CASE WHEN {{unset as_of}} THEN CAST('infinity' AS TIMESTAMPTZ)
      WHEN {{registry_backfill}} THEN greatest({{as_of}}, (SELECT known_since FROM _pit_start)) ELSE {{as_of}} END AS known,
    coalesce({{observed_as_of}}, CAST('infinity' AS TIMESTAMPTZ)) AS held
),
_pit_products AS (
  SELECT id, name, symbol, isin, status, issuer_id, asset_id, min("at") OVER (PARTITION BY id) AS first_seen,
    "at", coalesce(lead("at") OVER (PARTITION BY id ORDER BY "at"), CAST('infinity' AS TIMESTAMPTZ)) AS until
  FROM {{files history.products}}
  WHERE "at" <= (SELECT least(known, held) FROM _pit_cut)
  QUALIFY op IS NOT NULL
),
_pit_issuers AS (
  SELECT id, name, status, jurisdiction, "at", coalesce(lead("at") OVER (PARTITION BY id ORDER BY "at"), CAST('infinity' AS TIMESTAMPTZ)) AS until
  FROM {{files history.issuers}}
  WHERE "at" <= (SELECT least(known, held) FROM _pit_cut)
  QUALIFY op IS NOT NULL
),
_pit_assets AS (
  SELECT id, name, asset_class, ticker, "at", coalesce(lead("at") OVER (PARTITION BY id ORDER BY "at"), CAST('infinity' AS TIMESTAMPTZ)) AS until
  FROM {{files history.assets}}
  WHERE "at" <= (SELECT least(known, held) FROM _pit_cut)
  QUALIFY op IS NOT NULL
),
_pit_contracts AS (
  SELECT id, product_id, chain_id, address, status, verification_status, "at", coalesce(lead("at") OVER (PARTITION BY id ORDER BY "at"), CAST('infinity' AS TIMESTAMPTZ)) AS until
  FROM {{files history.deployments}}
  WHERE "at" <= (SELECT least(known, held) FROM _pit_cut)
  QUALIFY op IS NOT NULL
),
-- A product changes where its own record does, and where that of its issuer, asset or contracts does.
_pit_steps AS (
  SELECT id, "at" AS version, "at" AS step FROM _pit_products
  UNION
  SELECT p.id, p."at", unnest([c."at", c.until]) AS step FROM _pit_products AS p JOIN _pit_contracts AS c ON c.product_id = p.id
  UNION
  SELECT p.id, p."at", unnest([i."at", i.until]) FROM _pit_products AS p JOIN _pit_issuers AS i ON i.id = p.issuer_id
  UNION
  SELECT p.id, p."at", unnest([a."at", a.until]) FROM _pit_products AS p JOIN _pit_assets AS a ON a.id = p.asset_id
),
_pit_spans AS (
  SELECT p.*, s.step AS since, least(p.until, coalesce(lead(s.step) OVER (PARTITION BY p.id, p."at" ORDER BY s.step), p.until)) AS ended
  FROM _pit_steps AS s JOIN _pit_products AS p ON p.id = s.id AND p."at" = s.version
  WHERE p."at" <= s.step AND s.step < p.until
),
_pit_contracted AS (
  SELECT s.id, s.since, list({id: c.id, chain_id: c.chain_id, address: c.address, status: c.status,
    verification_status: c.verification_status} ORDER BY c.id) AS deployments
  FROM _pit_spans AS s JOIN _pit_contracts AS c ON c.product_id = s.id AND c."at" <= s.since AND s.since < c.until
  GROUP BY s.id, s.since
),
_pit_states AS (
  SELECT s.id AS product_id, s.name, s.symbol, s.isin, s.status, s.issuer_id, i.name AS issuer_name, i.status AS issuer_status,
    i.jurisdiction, s.asset_id, a.name AS asset_name, a.asset_class, a.ticker,
    coalesce(c.deployments, CAST([] AS STRUCT(id VARCHAR, chain_id VARCHAR, address VARCHAR, status VARCHAR,
      verification_status VARCHAR)[])) AS deployments, s."at" AS valid_from, s.first_seen, s.since AS _pit_since, s.ended AS _pit_ended
  FROM _pit_spans AS s
  LEFT JOIN _pit_issuers AS i ON i.id = s.issuer_id AND i."at" <= s.since AND s.since < i.until
  LEFT JOIN _pit_assets AS a ON a.id = s.asset_id AND a."at" <= s.since AND s.since < a.until
  LEFT JOIN _pit_contracted AS c ON c.id = s.id AND c.since = s.since
),
_pit_members AS (
  FROM _pit_states WHERE members
)
SELECT d.* EXCLUDE (_pit_ts, _pit_at), m.product_id, m.name, m.symbol, m.isin, m.status, m.issuer_id, m.asset_id,
  m.valid_from, d._pit_ts < d._pit_at AS assumed
FROM _pit_decisions AS d
JOIN _pit_members AS m ON m._pit_since <= d._pit_at AND d._pit_at < m._pit_ended
WHERE NOT EXISTS (FROM _pit_clash)
);
COMMENT ON MACRO TABLE pit_universe IS 'pit_universe(decisions [, members]): each row of a table or view with ts, and the products known at ts, a row for each: product_id, name, symbol, isin, status, issuer_id, asset_id, valid_from, assumed. members is a condition on the columns of universe as known at ts.';
