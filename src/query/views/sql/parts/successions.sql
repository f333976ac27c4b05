-- _id_edges: which metric asset took over from which. This is the WITH clause of a relation; the caller adds FROM
--   _id_edges.
-- columns: predecessor, successor, product_id, known_at, undone_at, change, chain, contract, symbol (of the link that
--   ended), heir (the link that continues it), is_certain, stitched.
-- The rule: both assets had a link to the same product. The link of the predecessor ended: it was renamed, its
--   contract was retired or removed, or its mapping ended. The successor's link began later and is the only one that
--   is open behind that end. If several are open, it must be the only one on the same chain.
-- law: L1. A row depends only on what was known at known_at. It is valid until undone_at, when the predecessor is
--   linked again.
--   Listings and points count from their own clocks. The first snapshot proves nothing about earlier times.
--   `stitched` rows are certain: both assets are linked to this product only, and no other asset follows the
--   predecessor or precedes the successor.
WITH RECURSIVE _id_listed AS (
  SELECT id, symbol, addresses, observed_at AS since,
    lead(observed_at, 1, TIMESTAMPTZ 'infinity') OVER (PARTITION BY id ORDER BY observed_at) AS until
  FROM {{files metric_assets}}
  WHERE ({{unset as_of}} OR observed_at <= {{as_of}})
    AND ({{unset observed_as_of}} OR observed_at <= {{observed_as_of}})
),
_id_mapped AS (
  SELECT metric_asset AS asset, product_id, {{chain_of chain_id}} AS chain, {{contract_of address}} AS contract,
    coalesce(since, TIMESTAMPTZ '-infinity') AS since, coalesce(until, TIMESTAMPTZ 'infinity') AS until
  FROM {{ledger links}}
),
-- Assets that the mapping does not name. Until it is listed, an asset with points has its id as its symbol.
_id_names AS (
  SELECT * FROM (
    SELECT id AS asset, lower(coalesce(symbol, id)) AS symbol,
      from_json(addresses, '[{"chain_id": "VARCHAR", "address": "VARCHAR"}]') AS contracts, since, until
    FROM _id_listed
    UNION ALL
    SELECT p.asset, lower(p.asset), NULL, p.since, coalesce(l.since, TIMESTAMPTZ 'infinity')
    FROM (SELECT asset, min(available_at) AS since FROM ({{every_point}}) GROUP BY asset) AS p
    LEFT JOIN (SELECT id, min(since) AS since FROM _id_listed GROUP BY id) AS l ON l.id = p.asset
    WHERE l.since IS NULL OR p.since < l.since
  ) WHERE asset NOT IN (SELECT asset FROM _id_mapped)
),
_id_products AS (
  SELECT id AS product_id, lower(symbol) AS symbol, valid_from AS since, valid_to AS until
  FROM ({{view history.products}})
),
_id_contracts AS (
  SELECT product_id, {{chain_of chain_id}} AS chain, {{contract_of address}} AS contract, valid_from AS since,
    valid_to AS until
  FROM ({{view history.deployments}})
  WHERE coalesce(lower(status), '') NOT IN ('deprecated', 'inactive') AND product_id IS NOT NULL
),
_id_listed_contracts AS (
  SELECT asset, {{chain_of item.chain_id}} AS chain, {{contract_of item.address}} AS contract, since, until
  FROM (SELECT asset, unnest(contracts) AS item, since, until FROM _id_names)
),
-- Every link of an asset to a product: by the mapping, by a contract, or by a symbol.
_id_claims AS (
  SELECT m.asset, p.product_id, CAST(NULL AS VARCHAR) AS chain, CAST(NULL AS VARCHAR) AS contract,
    CAST(NULL AS VARCHAR) AS symbol, greatest(m.since, p.since) AS since, least(m.until, p.until) AS until
  FROM _id_mapped AS m JOIN _id_products AS p USING (product_id)
  UNION ALL
  SELECT m.asset, c.product_id, c.chain, c.contract, NULL, greatest(m.since, c.since), least(m.until, c.until)
  FROM (
    FROM _id_mapped
    UNION ALL SELECT asset, NULL, chain, contract, since, until FROM _id_listed_contracts
  ) AS m JOIN _id_contracts AS c USING (chain, contract)
  UNION ALL
  SELECT n.asset, p.product_id, NULL, NULL, n.symbol, greatest(n.since, p.since), least(n.until, p.until)
  FROM _id_names AS n JOIN _id_products AS p USING (symbol)
  WHERE coalesce(len(n.contracts), 0) = 0
),
-- Claims that touch are one period.
_id_period_starts AS (
  SELECT *, coalesce(max(until) OVER (PARTITION BY asset, product_id, chain, contract, symbol
    ORDER BY since, until ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) < since, true) AS starts_period
  -- A mapping states its end in advance; until as_of reaches it, the link is open.
  FROM (SELECT * REPLACE (CASE WHEN {{as_of}} < until THEN TIMESTAMPTZ 'infinity' ELSE until END AS until) FROM _id_claims)
  WHERE since < until AND ({{unset as_of}} OR since <= {{as_of}})
),
_id_numbered_periods AS (
  SELECT *, count_if(starts_period) OVER (PARTITION BY asset, product_id, chain, contract, symbol
    ORDER BY since, until ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS period_number
  FROM _id_period_starts
),
_id_periods AS MATERIALIZED (
  SELECT asset, product_id, chain, contract, symbol, min(since) AS since, max(until) AS until
  FROM _id_numbered_periods
  GROUP BY asset, product_id, chain, contract, symbol, period_number
),
-- Periods that ended, and when the same link began again.
_id_ended AS (
  SELECT row_number() OVER () AS n, * FROM (
    SELECT *, lead(since, 1, TIMESTAMPTZ 'infinity')
      OVER (PARTITION BY asset, product_id, chain, contract, symbol ORDER BY since) AS renewed_at
    FROM _id_periods
  ) WHERE until < TIMESTAMPTZ 'infinity'
),
_id_moments AS (
  SELECT product_id, since AS at FROM _id_periods
  UNION SELECT product_id, until FROM _id_periods WHERE until < TIMESTAMPTZ 'infinity'
),
-- The first moment after its end at which exactly one other link can continue a period, and that link.
_id_heirs AS (
  SELECT e.n, m.at, min({'other_chain': coalesce(h.chain <> e.chain, true), 'since': h.since, 'asset': h.asset,
    'chain': h.chain, 'contract': h.contract, 'symbol': h.symbol}) AS heir
  FROM _id_ended AS e
  JOIN _id_moments AS m ON m.product_id = e.product_id AND m.at >= e.until AND m.at < e.renewed_at
  JOIN _id_periods AS h
    ON h.product_id = e.product_id AND h.since <= m.at AND m.at < h.until AND h.since > e.since
  GROUP BY e.n, m.at
  HAVING CASE WHEN bool_or(h.chain = e.chain) THEN count(DISTINCT h.asset) FILTER (h.chain = e.chain)
    ELSE count(DISTINCT h.asset) END = 1
  QUALIFY row_number() OVER (PARTITION BY e.n ORDER BY m.at) = 1
),
_id_asset_periods AS (
  SELECT asset, list({'product_id': product_id, 'since': since, 'until': until}) AS periods
  FROM _id_periods GROUP BY asset
),
_id_successions AS (
  SELECT e.asset AS predecessor, h.heir.asset AS successor, e.product_id, h.at AS known_at,
    CASE WHEN e.chain <> h.heir.chain THEN 'chain' WHEN e.contract <> h.heir.contract THEN 'address'
      WHEN e.symbol <> h.heir.symbol THEN 'symbol' ELSE 'link' END AS change,
    coalesce(
      list_min(list_transform(list_filter(a.periods, lambda period: period.since > h.at), lambda period: period.since)),
      TIMESTAMPTZ 'infinity') AS undone_at,
    e.chain, e.contract, e.symbol, h.heir,
    e.asset <> h.heir.asset
      AND len(list_filter(a.periods, lambda period: (period.since <= h.at AND e.until < period.until)
        OR (period.product_id <> e.product_id AND period.since < e.until AND e.until <= period.until))) = 0
      AND len(list_filter(b.periods, lambda period: period.product_id <> e.product_id
        AND period.since <= h.at AND h.at < period.until)) = 0 AS is_certain
  FROM _id_ended AS e
  JOIN _id_heirs AS h USING (n)
  JOIN _id_asset_periods AS a ON a.asset = e.asset
  JOIN _id_asset_periods AS b ON b.asset = h.heir.asset
),
_id_edges AS MATERIALIZED (
  SELECT x.*, x.is_certain AND NOT EXISTS (
    FROM _id_successions AS y
    WHERE y.is_certain AND (y.predecessor = x.predecessor OR y.successor = x.successor)
      AND NOT (y.predecessor = x.predecessor AND y.successor = x.successor)
      AND y.known_at <= x.known_at AND y.undone_at > x.known_at
  ) AS stitched
  FROM _id_successions AS x
)
