-- The rows of points as they are published: those of the listed files, with both instants from which a point may
--   count as known.
SELECT stored.metric, stored.asset, stored."interval", stored.currency, stored.exchange, stored.network, stored.t,
  stored.available_at, {{available_by_rule}} AS available_rule_at, stored.observed_at, {{computed_at}} AS computed_at, stored.basis,
  stored.v, stored.o, stored.extra
FROM {{files}} AS stored
