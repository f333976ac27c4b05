-- pit_universe: every row of a relation with ts, with the products known at ts: a row per decision and product.
-- columns: those of the caller, then product_id, name, symbol, isin, status, issuer_id, asset_id, valid_from, assumed.
-- reads: products name symbol isin status issuer_id asset_id.
-- law: L1. At the instant of a poll its versions are known, those that it ended are not. Rows without a product are not
--   kept: before the first snapshot nothing is known, unless registry_backfill lets that snapshot stand in.
CREATE OR REPLACE MACRO pit_universe(decisions) AS TABLE
WITH _pit_start AS (
  SELECT min(observed_at) AS known_since FROM {{files snapshots}}
  WHERE ({{as_of}} IS NULL OR observed_at <= {{as_of}} OR {{registry_backfill}})
    AND ({{observed_as_of}} IS NULL OR observed_at <= {{observed_as_of}})
),
_pit_versions AS (
  SELECT id AS product_id, name, symbol, isin, status, issuer_id, asset_id, "at" AS valid_from, op,
    lead("at") OVER (PARTITION BY id ORDER BY "at") AS _pit_until
  FROM {{files history.products}}
  WHERE ({{as_of}} IS NULL OR "at" <= CASE WHEN {{registry_backfill}}
      THEN greatest({{as_of}}, (SELECT known_since FROM _pit_start)) ELSE {{as_of}} END)
    AND ({{observed_as_of}} IS NULL OR "at" <= {{observed_as_of}})
),
_pit_decisions AS (
  SELECT yours.*, {{utc yours.ts}} AS _pit_ts,
    CASE WHEN {{registry_backfill}} THEN greatest({{utc yours.ts}}, (SELECT known_since FROM _pit_start))
      ELSE {{utc yours.ts}} END AS _pit_at
  FROM query_table(decisions) AS yours
),
_pit_clash AS (
  SELECT product_id, name, symbol, isin, status, issuer_id, asset_id, valid_from, assumed
  FROM query_table(decisions) AS yours, (SELECT NULL AS product_id, NULL AS name, NULL AS symbol, NULL AS isin, NULL AS status,
    NULL AS issuer_id, NULL AS asset_id, NULL AS valid_from, NULL AS assumed) AS pit_universe
  LIMIT 0
)
SELECT d.* EXCLUDE (_pit_ts, _pit_at), v.product_id, v.name, v.symbol, v.isin, v.status, v.issuer_id, v.asset_id,
  v.valid_from, d._pit_ts < d._pit_at AS assumed
FROM _pit_decisions AS d
JOIN _pit_versions AS v
  ON v.valid_from <= d._pit_at AND d._pit_at < coalesce(v._pit_until, CAST('infinity' AS TIMESTAMPTZ))
WHERE v.op IS NOT NULL AND NOT EXISTS (FROM _pit_clash);
COMMENT ON MACRO TABLE pit_universe IS 'pit_universe(decisions): each row of a table or view with ts, and the products known at ts, a row for each: product_id, name, symbol, isin, status, issuer_id, asset_id, valid_from, assumed.';
