-- links: which product of the registry an asset of the metrics API is, and during which time.
-- columns: metric_asset, product_id, basis, ambiguous, valid_from, valid_to, symbol, chain_id, address, assumed,
--   predecessor, predecessor_at, predecessor_change, successor, successor_at, successor_change.
-- reads: products symbol, deployments product_id chain_id address status.
-- law: L1, L6. Links are dated by the registry's clock and cut before they are closed: a link that ended after as_of
--   is open.
--   An asset in the mapping is linked by the mapping only. Any other asset is linked by the contracts of its listing.
--   Without contracts it is linked by its symbol.
--   At times without such a link, a variant of its symbol is tried. If several products have that variant, product_id
--   is NULL.
CREATE OR REPLACE VIEW links AS
WITH first_snapshot AS (
  SELECT min(observed_at) AS start FROM {{files snapshots}}
  WHERE {{unset observed_as_of}} OR observed_at <= {{observed_as_of}}
),
-- With registry_backfill the first snapshot stands in for the time before it.
product_versions AS (
  SELECT id AS product_id, symbol, valid_from, valid_to, false AS assumed FROM ({{view history.products}})
  UNION ALL
  SELECT id, symbol, TIMESTAMPTZ '-infinity',
    CASE WHEN {{as_of}} < start THEN TIMESTAMPTZ 'infinity' ELSE start END, true
  FROM {{files history.products}} JOIN first_snapshot ON "at" = start
  WHERE op IS NOT NULL AND {{registry_backfill}}
),
deployment_versions AS (
  SELECT product_id, {{chain_of chain_id}} AS chain,
    {{contract_of address}} AS contract,
    valid_from, valid_to, assumed
  FROM (
    SELECT product_id, chain_id, address, valid_from, valid_to, false AS assumed FROM ({{view history.deployments}})
    UNION ALL
    SELECT product_id, chain_id, address, TIMESTAMPTZ '-infinity',
      CASE WHEN {{as_of}} < start THEN TIMESTAMPTZ 'infinity' ELSE start END, true
    FROM {{files history.deployments}} JOIN first_snapshot ON "at" = start
    WHERE op IS NOT NULL AND {{registry_backfill}}
  )
),
mapping AS (
  SELECT metric_asset, product_id, {{chain_of chain_id}} AS chain,
    {{contract_of address}} AS contract,
    coalesce(since, TIMESTAMPTZ '-infinity') AS since, coalesce(until, TIMESTAMPTZ 'infinity') AS until
  FROM {{ledger links}}
),
-- The listing is optional: an asset that has points is an asset too, its id then its symbol.
unmapped AS (
  SELECT coalesce(listed.id, with_points.asset) AS metric_asset,
    coalesce(listed.symbol, listed.id, with_points.asset) AS symbol,
    from_json(listed.addresses, '[{"chain_id": "VARCHAR", "address": "VARCHAR"}]') AS contracts
  FROM ({{view metric_assets}}) AS listed
  FULL JOIN (SELECT DISTINCT asset FROM ({{points}})) AS with_points ON with_points.asset = listed.id
  WHERE coalesce(listed.id, with_points.asset) NOT IN (SELECT metric_asset FROM mapping)
),
listed_contracts AS (
  SELECT metric_asset, {{chain_of contract.chain_id}} AS chain,
    {{contract_of contract.address}} AS contract
  FROM (SELECT metric_asset, unnest(contracts) AS contract FROM unmapped)
),
direct AS (
  SELECT metric_asset, product_id, 'mapping' AS basis,
    CAST(NULL AS VARCHAR) AS symbol, CAST(NULL AS VARCHAR) AS chain_id,
    CAST(NULL AS VARCHAR) AS address, greatest(valid_from, since) AS valid_from,
    least(valid_to, until) AS valid_to, assumed
  FROM mapping JOIN product_versions USING (product_id)
  UNION ALL
  SELECT metric_asset, deployment_versions.product_id, 'mapping', NULL, chain, contract,
    greatest(valid_from, since), least(valid_to, until), assumed
  FROM mapping JOIN deployment_versions USING (chain, contract)
  UNION ALL
  SELECT metric_asset, product_id, 'address', NULL, chain, contract, valid_from, valid_to, assumed
  FROM listed_contracts JOIN deployment_versions USING (chain, contract)
  UNION ALL
  SELECT metric_asset, product_id, 'symbol', product_versions.symbol, NULL, NULL, valid_from, valid_to, assumed
  FROM unmapped JOIN product_versions ON lower(product_versions.symbol) = lower(unmapped.symbol)
  WHERE coalesce(len(contracts), 0) = 0
),
variants AS (
  SELECT listed.id AS metric_asset, lower(left(listed.symbol, len(listed.symbol) - len(metrics)) || registry) AS symbol
  FROM ({{view metric_assets}}) AS listed JOIN {{ledger symbol_variants}} AS variant
    ON len(listed.symbol) > len(metrics) AND ends_with(lower(listed.symbol), lower(metrics))
  WHERE listed.id NOT IN (SELECT metric_asset FROM mapping)
),
variant_matches AS (
  SELECT metric_asset, product_id, product_versions.symbol, valid_from, valid_to, assumed
  FROM variants JOIN product_versions ON lower(product_versions.symbol) = variants.symbol
  WHERE valid_from < valid_to
),
direct_matches AS (
  SELECT metric_asset, valid_from, valid_to FROM direct
  WHERE valid_from < valid_to AND product_id IS NOT NULL AND metric_asset IN (SELECT metric_asset FROM variant_matches)
),
-- Between two changes of any match the same products match all the time.
variant_slots AS (
  SELECT metric_asset, since, lead(since) OVER (PARTITION BY metric_asset ORDER BY since) AS until
  FROM (
    SELECT metric_asset, unnest([valid_from, valid_to]) AS since FROM variant_matches
    UNION SELECT metric_asset, unnest([valid_from, valid_to]) FROM direct_matches
  )
),
matches AS (
  FROM direct
  UNION ALL
  SELECT slot.metric_asset,
    CASE WHEN count(DISTINCT variant_match.product_id) = 1 THEN min(variant_match.product_id) END,
    'symbol',
    min(variant_match.symbol), NULL, NULL, slot.since, slot.until, bool_or(variant_match.assumed)
  FROM variant_slots AS slot
  JOIN variant_matches AS variant_match
    ON variant_match.metric_asset = slot.metric_asset
      AND variant_match.valid_from <= slot.since AND slot.until <= variant_match.valid_to
  LEFT JOIN direct_matches AS direct_match
    ON direct_match.metric_asset = slot.metric_asset
      AND direct_match.valid_from <= slot.since AND slot.until <= direct_match.valid_to
  WHERE direct_match.metric_asset IS NULL
  GROUP BY slot.metric_asset, slot.since, slot.until
),
-- Versions that touch are one period; an asset is linked on one basis only, and what is assumed lies before the rest.
period_starts AS (
  SELECT *, coalesce(max(valid_to) OVER (PARTITION BY metric_asset, product_id, symbol, chain_id, address
    ORDER BY valid_from, valid_to ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) < valid_from, true) AS starts_period
  FROM matches
  WHERE valid_from < valid_to AND (product_id IS NOT NULL OR basis = 'symbol')
),
numbered_periods AS (
  SELECT *, count_if(starts_period) OVER (PARTITION BY metric_asset, product_id, symbol, chain_id, address
    ORDER BY valid_from, valid_to ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS period
  FROM period_starts
),
periods AS (
  SELECT metric_asset, product_id, basis, min(valid_from) AS valid_from, max(valid_to) AS valid_to,
    symbol, chain_id, address, assumed
  FROM numbered_periods
  GROUP BY metric_asset, product_id, basis, symbol, chain_id, address, assumed, period
),
current_successions AS MATERIALIZED (
  SELECT * FROM (
    {{part successions}}
    FROM _id_edges
  ) WHERE undone_at = TIMESTAMPTZ 'infinity'
),
predecessors AS (
  SELECT heir.asset AS asset, product_id AS product,
    heir.chain AS chain, heir.contract AS contract, heir.symbol AS lower_symbol,
    max({'at': known_at, 'asset': predecessor, 'change': change}) AS latest
  FROM current_successions GROUP BY ALL
),
successors AS (
  SELECT predecessor AS asset, product_id AS product, chain, contract, symbol AS lower_symbol,
    max({'at': known_at, 'asset': successor, 'change': change}) AS latest
  FROM current_successions GROUP BY ALL
)
SELECT metric_asset, product_id, basis,
  product_id IS NULL OR len(list_filter(rivals, lambda rival: rival.product_id <> product_id
    AND rival.valid_from < valid_to AND valid_from < rival.valid_to)) > 0 AS ambiguous,
  valid_from, valid_to, symbol, chain_id, address, assumed,
  predecessors.latest.asset AS predecessor, predecessors.latest.at AS predecessor_at,
  predecessors.latest.change AS predecessor_change,
  successors.latest.asset AS successor, successors.latest.at AS successor_at,
  successors.latest.change AS successor_change
FROM (
  SELECT *, list({'product_id': product_id, 'valid_from': valid_from, 'valid_to': valid_to})
    OVER (PARTITION BY metric_asset) AS rivals
  FROM periods
) AS linked
LEFT JOIN predecessors
  ON predecessors.asset = metric_asset AND predecessors.product = product_id
    AND predecessors.chain IS NOT DISTINCT FROM chain_id
    AND predecessors.contract IS NOT DISTINCT FROM address
    AND predecessors.lower_symbol IS NOT DISTINCT FROM lower(linked.symbol)
    AND predecessors.latest.at < valid_to
LEFT JOIN successors
  ON successors.asset = metric_asset AND successors.product = product_id
    AND successors.chain IS NOT DISTINCT FROM chain_id
    AND successors.contract IS NOT DISTINCT FROM address
    AND successors.lower_symbol IS NOT DISTINCT FROM lower(linked.symbol)
    AND successors.latest.at > valid_from;
COMMENT ON VIEW links IS 'Which asset of the metrics API is which product of the registry, and during which time.';
COMMENT ON COLUMN links.metric_asset IS 'asset id of the metrics API';
COMMENT ON COLUMN links.product_id IS 'id of the product in the registry; NULL if several products have a variant of the symbol, because then none is linked';
COMMENT ON COLUMN links.basis IS 'mapping (catalog/links.yaml or the user''s), address or symbol';
COMMENT ON COLUMN links.ambiguous IS 'true if several products match at the same time. Each has a row, except products that match only by a variant of the symbol';
COMMENT ON COLUMN links.valid_from IS 'the poll from which the link applies. A line of the mapping with the key from applies from that date at the earliest';
COMMENT ON COLUMN links.valid_to IS 'its end, exclusive; infinity while it is open';
COMMENT ON COLUMN links.symbol IS 'the product''s symbol, if it made the link';
COMMENT ON COLUMN links.chain_id IS 'the chain, if a contract made the link';
COMMENT ON COLUMN links.address IS 'the contract, if it made the link; hex in lower case';
COMMENT ON COLUMN links.assumed IS 'true if registry_backfill added the row: it is from the first snapshot and was not known at this as_of';
COMMENT ON COLUMN links.predecessor IS 'the metric asset whose link this one continues; the same asset if only its contract changed; NULL if none is known';
COMMENT ON COLUMN links.predecessor_at IS 'the poll at which that was known';
COMMENT ON COLUMN links.predecessor_change IS 'chain (a different one), address (corrected), symbol (renamed) or link (mapped or listed differently)';
COMMENT ON COLUMN links.successor IS 'the metric asset whose link continues this one; the same asset if only its contract changed; NULL if none is known';
COMMENT ON COLUMN links.successor_at IS 'the poll at which that was known';
COMMENT ON COLUMN links.successor_change IS 'as predecessor_change';
