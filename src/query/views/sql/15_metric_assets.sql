-- metric_assets: one row for each asset that the metrics API has listed.
-- columns: id, symbol, addresses, record, first_seen, changed_at, assumed.
-- law: L1, L6. An entry is known from the poll that returned it. With registry_backfill, the earliest entry of an
--   asset also counts before that poll.
CREATE OR REPLACE VIEW metric_assets AS
SELECT id, arg_max_null(symbol, observed_at) AS symbol, arg_max_null(addresses, observed_at) AS addresses,
  arg_max_null(record, observed_at) AS record, min(observed_at) AS first_seen, max(observed_at) AS changed_at,
  coalesce(min(observed_at) > {{as_of}}, false) AS assumed
FROM (
  SELECT *, observed_at = min(observed_at) OVER (PARTITION BY id) AS is_earliest
  FROM {{files metric_assets}}
  WHERE {{unset observed_as_of}} OR observed_at <= {{observed_as_of}}
)
WHERE {{unset as_of}} OR observed_at <= {{as_of}} OR ({{registry_backfill}} AND is_earliest)
GROUP BY id;
COMMENT ON VIEW metric_assets IS 'Assets that the metrics API lists, as known at as_of.';
COMMENT ON COLUMN metric_assets.id IS 'asset id of the metrics API';
COMMENT ON COLUMN metric_assets.symbol IS 'its symbol, if the listing has one';
COMMENT ON COLUMN metric_assets.addresses IS 'its contracts as a JSON array of {chain_id, address}; NULL if the listing has none';
COMMENT ON COLUMN metric_assets.record IS 'its entry in the listing, JSON';
COMMENT ON COLUMN metric_assets.first_seen IS 'the poll that first showed it';
COMMENT ON COLUMN metric_assets.changed_at IS 'the poll that last changed it';
COMMENT ON COLUMN metric_assets.assumed IS 'true if registry_backfill added the row: it is from a later listing and was not known at this as_of';
