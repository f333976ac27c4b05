-- pit_universe: every row of a relation with ts, once for each product that was known at ts.
-- columns: those of the caller, then product_id, name, symbol, isin, status, issuer_id, asset_id, valid_from,
--   assumed.
-- reads: products name symbol isin status issuer_id asset_id, issuers name status jurisdiction, assets name
--   asset_class ticker, deployments product_id chain_id address status verification_status.
-- law: L1. At the time of a poll the versions that it returned are known, and the versions that it ended are not.
--   Rows without a product are dropped. Before the first snapshot no product is known, unless registry_backfill
--   assumes that snapshot.
--   The second argument is a condition on the columns of universe, with their values as known at ts.
CREATE OR REPLACE MACRO pit_universe(decisions) AS TABLE (
WITH {{part universe_decisions}},
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
WITH {{part universe_decisions}},
{{part universe_states}},
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
