-- Which metric asset took over from which, for FROM, inside brackets: of links to one product the one that ended (renamed, its
-- contract retired or removed, its mapping over) and the only one that is there behind it and began later; of several one
-- on the same chain.
-- law: L1. A row is told by what was known at known_at, and stands until undone_at, when the predecessor is in use again. Listings
--   and points count from their own clocks, and the first snapshot tells of no time before it. `stitched` rows are beyond
--   doubt: both are links to one product alone, and nothing else follows the one or goes before the other.
WITH RECURSIVE _id_listed AS (
  SELECT id, symbol, addresses, observed_at AS since, lead(observed_at, 1, TIMESTAMPTZ 'infinity') OVER (PARTITION BY id ORDER BY observed_at) AS until
  FROM {{files metric_assets}}
  WHERE ({{unset as_of}} OR observed_at <= {{as_of}}) AND ({{unset observed_as_of}} OR observed_at <= {{observed_as_of}})
),
_id_mapped AS (
  SELECT metric_asset AS asset, product_id, {{chain_of chain_id}} AS chain, {{contract_of address}} AS contract,
    coalesce(since, TIMESTAMPTZ '-infinity') AS since, coalesce(until, TIMESTAMPTZ 'infinity') AS until
  FROM {{ledger links}}
),
_id_names AS (
  SELECT * FROM (
    SELECT id AS asset, lower(coalesce(symbol, id)) AS symbol, from_json(addresses, '[{"chain_id": "VARCHAR", "address": "VARCHAR"}]') AS contracts, since, until
    FROM _id_listed
    UNION ALL
    SELECT p.asset, lower(p.asset), NULL, p.since, coalesce(l.since, TIMESTAMPTZ 'infinity')
    FROM (SELECT asset, min(available_at) AS since FROM ({{every_point}}) GROUP BY asset) AS p
    LEFT JOIN (SELECT id, min(since) AS since FROM _id_listed GROUP BY id) AS l ON l.id = p.asset
    WHERE l.since IS NULL OR p.since < l.since
  ) WHERE asset NOT IN (SELECT asset FROM _id_mapped)
),
_id_products AS (SELECT id AS product_id, lower(symbol) AS symbol, valid_from AS since, valid_to AS until FROM ({{view history.products}})),
_id_contracts AS (
  SELECT product_id, {{chain_of chain_id}} AS chain, {{contract_of address}} AS contract, valid_from AS since, valid_to AS until
  FROM ({{view history.deployments}}) WHERE coalesce(lower(status), '') NOT IN ('deprecated', 'inactive') AND product_id IS NOT NULL
),
_id_carried AS (
  SELECT asset, {{chain_of one.chain_id}} AS chain, {{contract_of one.address}} AS contract, since, until
  FROM (SELECT asset, unnest(contracts) AS one, since, until FROM _id_names)
),
_id_claims AS (
  SELECT m.asset, p.product_id, CAST(NULL AS VARCHAR) AS chain, CAST(NULL AS VARCHAR) AS contract, CAST(NULL AS VARCHAR) AS symbol,
    greatest(m.since, p.since) AS since, least(m.until, p.until) AS until
  FROM _id_mapped AS m JOIN _id_products AS p USING (product_id)
  UNION ALL
  SELECT m.asset, c.product_id, c.chain, c.contract, NULL, greatest(m.since, c.since), least(m.until, c.until)
  FROM (FROM _id_mapped UNION ALL SELECT asset, NULL, chain, contract, since, until FROM _id_carried) AS m JOIN _id_contracts AS c USING (chain, contract)
  UNION ALL
  SELECT n.asset, p.product_id, NULL, NULL, n.symbol, greatest(n.since, p.since), least(n.until, p.until)
  FROM _id_names AS n JOIN _id_products AS p USING (symbol) WHERE coalesce(len(n.contracts), 0) = 0
),
_id_marked AS (
  SELECT *, coalesce(max(until) OVER (PARTITION BY asset, product_id, chain, contract, symbol
    ORDER BY since, until ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) < since, true) AS apart
  -- A mapping says beforehand how long it holds.
  FROM (SELECT * REPLACE (CASE WHEN {{as_of}} < until THEN TIMESTAMPTZ 'infinity' ELSE until END AS until) FROM _id_claims)
  WHERE since < until AND ({{unset as_of}} OR since <= {{as_of}})
),
_id_numbered AS (
  SELECT *, count_if(apart) OVER (PARTITION BY asset, product_id, chain, contract, symbol ORDER BY since, until ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS spell
  FROM _id_marked
),
_id_held AS MATERIALIZED (
  SELECT asset, product_id, chain, contract, symbol, min(since) AS since, max(until) AS until
  FROM _id_numbered GROUP BY asset, product_id, chain, contract, symbol, spell
),
_id_ended AS (
  SELECT row_number() OVER () AS n, * FROM (
    SELECT *, lead(since, 1, TIMESTAMPTZ 'infinity') OVER (PARTITION BY asset, product_id, chain, contract, symbol ORDER BY since) AS again FROM _id_held
  ) WHERE until < TIMESTAMPTZ 'infinity'
),
_id_moments AS (
  SELECT product_id, since AS at FROM _id_held UNION SELECT product_id, until FROM _id_held WHERE until < TIMESTAMPTZ 'infinity'
),
_id_heirs AS (
  SELECT e.n, m.at, min({'far': coalesce(h.chain <> e.chain, true), 'since': h.since, 'asset': h.asset, 'chain': h.chain, 'contract': h.contract, 'symbol': h.symbol}) AS heir
  FROM _id_ended AS e JOIN _id_moments AS m ON m.product_id = e.product_id AND m.at >= e.until AND m.at < e.again
  JOIN _id_held AS h ON h.product_id = e.product_id AND h.since <= m.at AND m.at < h.until AND h.since > e.since
  GROUP BY e.n, m.at
  HAVING CASE WHEN bool_or(h.chain = e.chain) THEN count(DISTINCT h.asset) FILTER (h.chain = e.chain) ELSE count(DISTINCT h.asset) END = 1
  QUALIFY row_number() OVER (PARTITION BY e.n ORDER BY m.at) = 1
),
_id_lives AS (
  SELECT asset, list({'product_id': product_id, 'since': since, 'until': until}) AS lives FROM _id_held GROUP BY asset
),
_id_found AS (
  SELECT e.asset AS predecessor, h.heir.asset AS successor, e.product_id, h.at AS known_at,
    CASE WHEN e.chain <> h.heir.chain THEN 'chain' WHEN e.contract <> h.heir.contract THEN 'address' WHEN e.symbol <> h.heir.symbol THEN 'symbol' ELSE 'link' END AS change,
    coalesce(list_min(list_transform(list_filter(a.lives, lambda one: one.since > h.at), lambda one: one.since)), TIMESTAMPTZ 'infinity') AS undone_at,
    e.chain, e.contract, e.symbol, h.heir,
    e.asset <> h.heir.asset
      AND len(list_filter(a.lives, lambda one: (one.since <= h.at AND e.until < one.until) OR (one.product_id <> e.product_id AND one.since < e.until AND e.until <= one.until))) = 0
      AND len(list_filter(b.lives, lambda one: one.product_id <> e.product_id AND one.since <= h.at AND h.at < one.until)) = 0 AS sure
  FROM _id_ended AS e JOIN _id_heirs AS h USING (n) JOIN _id_lives AS a ON a.asset = e.asset JOIN _id_lives AS b ON b.asset = h.heir.asset
),
_id_edges AS MATERIALIZED (
  SELECT x.*, x.sure AND NOT EXISTS (
    FROM _id_found AS y WHERE y.sure AND (y.predecessor = x.predecessor OR y.successor = x.successor) AND NOT (y.predecessor = x.predecessor AND y.successor = x.successor)
      AND y.known_at <= x.known_at AND y.undone_at > x.known_at
  ) AS stitched
  FROM _id_found AS x
)
