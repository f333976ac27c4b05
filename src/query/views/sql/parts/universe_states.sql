-- _pit_states: every state of every product with its issuer, asset and contracts, one row for each span in which none
--   of them changed.
-- columns: those of universe, then _pit_since and _pit_ended: the span, half-open.
-- Needs _pit_start.
_pit_cut AS (
  SELECT CASE WHEN {{unset as_of}} THEN CAST('infinity' AS TIMESTAMPTZ)
      WHEN {{registry_backfill}} THEN greatest({{as_of}}, (SELECT known_since FROM _pit_start)) ELSE {{as_of}} END AS as_of_limit,
    coalesce({{observed_as_of}}, CAST('infinity' AS TIMESTAMPTZ)) AS observed_limit
),
_pit_products AS (
  SELECT id, name, symbol, isin, status, issuer_id, asset_id, min("at") OVER (PARTITION BY id) AS first_seen,
    "at", coalesce(lead("at") OVER (PARTITION BY id ORDER BY "at"), CAST('infinity' AS TIMESTAMPTZ)) AS until
  FROM {{files history.products}}
  WHERE "at" <= (SELECT least(as_of_limit, observed_limit) FROM _pit_cut)
  QUALIFY op IS NOT NULL
),
_pit_issuers AS (
  SELECT id, name, status, jurisdiction, "at",
    coalesce(lead("at") OVER (PARTITION BY id ORDER BY "at"), CAST('infinity' AS TIMESTAMPTZ)) AS until
  FROM {{files history.issuers}}
  WHERE "at" <= (SELECT least(as_of_limit, observed_limit) FROM _pit_cut)
  QUALIFY op IS NOT NULL
),
_pit_assets AS (
  SELECT id, name, asset_class, ticker, "at",
    coalesce(lead("at") OVER (PARTITION BY id ORDER BY "at"), CAST('infinity' AS TIMESTAMPTZ)) AS until
  FROM {{files history.assets}}
  WHERE "at" <= (SELECT least(as_of_limit, observed_limit) FROM _pit_cut)
  QUALIFY op IS NOT NULL
),
_pit_contracts AS (
  SELECT id, product_id, chain_id, address, status, verification_status, "at",
    coalesce(lead("at") OVER (PARTITION BY id ORDER BY "at"), CAST('infinity' AS TIMESTAMPTZ)) AS until
  FROM {{files history.deployments}}
  WHERE "at" <= (SELECT least(as_of_limit, observed_limit) FROM _pit_cut)
  QUALIFY op IS NOT NULL
),
-- A product changes where its own record does, and where that of its issuer, asset or contracts does.
_pit_steps AS (
  SELECT id, "at" AS version, "at" AS step FROM _pit_products
  UNION
  SELECT p.id, p."at", unnest([c."at", c.until]) AS step
  FROM _pit_products AS p JOIN _pit_contracts AS c ON c.product_id = p.id
  UNION
  SELECT p.id, p."at", unnest([i."at", i.until]) FROM _pit_products AS p JOIN _pit_issuers AS i ON i.id = p.issuer_id
  UNION
  SELECT p.id, p."at", unnest([a."at", a.until]) FROM _pit_products AS p JOIN _pit_assets AS a ON a.id = p.asset_id
),
_pit_spans AS (
  SELECT p.*, s.step AS since,
    least(p.until, coalesce(lead(s.step) OVER (PARTITION BY p.id, p."at" ORDER BY s.step), p.until)) AS ended
  FROM _pit_steps AS s JOIN _pit_products AS p ON p.id = s.id AND p."at" = s.version
  WHERE p."at" <= s.step AND s.step < p.until
),
_pit_product_contracts AS (
  SELECT s.id, s.since, list({id: c.id, chain_id: c.chain_id, address: c.address, status: c.status,
    verification_status: c.verification_status} ORDER BY c.id) AS deployments, {{distinct_list c.chain_id}} AS chains
  FROM _pit_spans AS s JOIN _pit_contracts AS c ON c.product_id = s.id AND c."at" <= s.since AND s.since < c.until
  GROUP BY s.id, s.since
),
_pit_states AS (
  SELECT s.id AS product_id, s.name, s.symbol, s.isin, s.status, s.issuer_id, i.name AS issuer_name,
    i.status AS issuer_status,
    i.jurisdiction, s.asset_id, a.name AS asset_name, a.asset_class, a.ticker,
    coalesce(c.deployments, CAST([] AS STRUCT(id VARCHAR, chain_id VARCHAR, address VARCHAR, status VARCHAR,
      verification_status VARCHAR)[])) AS deployments,
    coalesce(c.chains, CAST([] AS VARCHAR[])) AS chains,
    s."at" AS valid_from, s.first_seen, s.since AS _pit_since, s.ended AS _pit_ended
  FROM _pit_spans AS s
  LEFT JOIN _pit_issuers AS i ON i.id = s.issuer_id AND i."at" <= s.since AND s.since < i.until
  LEFT JOIN _pit_assets AS a ON a.id = s.asset_id AND a."at" <= s.since AND s.since < a.until
  LEFT JOIN _pit_product_contracts AS c ON c.id = s.id AND c.since = s.since
)
