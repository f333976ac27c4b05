-- The inputs of pit_universe, with or without a condition.
-- _pit_decisions: the caller's rows, with the time at which the registry is read for each (_pit_at).
-- _pit_clash: no rows. It makes a column of the caller an error if the answer has a column of that name, too.
{{part registry_start}},
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
