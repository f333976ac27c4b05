-- The rows of components as they are published: the view, and for a backfilled point the instant that its rule gives.
SELECT leaf.metric, leaf.asset, leaf."interval", leaf.currency, leaf.exchange, leaf.network, leaf.t, leaf.available_at,
  coalesce(backfilled.available_rule_at, leaf.available_at) AS available_rule_at, leaf.observed_at, leaf.basis,
  leaf.component, leaf.v
FROM components AS leaf
LEFT JOIN (SELECT * FROM {{files}} WHERE available_rule_at IS NOT NULL AND o IS NOT NULL) AS backfilled
  ON backfilled.metric = leaf.metric AND backfilled.asset IS NOT DISTINCT FROM leaf.asset
    AND backfilled."interval" = leaf."interval" AND backfilled.currency IS NOT DISTINCT FROM leaf.currency
    AND backfilled.exchange IS NOT DISTINCT FROM leaf.exchange AND backfilled.network IS NOT DISTINCT FROM leaf.network
    AND backfilled.t = leaf.t
