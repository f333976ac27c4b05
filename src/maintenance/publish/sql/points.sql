-- points as they are published: those of the listed files, with both instants by which a point may count as known.
SELECT stored.metric, stored.asset, stored."interval", stored.currency, stored.exchange, stored.network, stored.t,
  stored.available_at, {{ruled}} AS available_rule_at, stored.observed_at, {{computed}} AS computed_at, stored.basis,
  stored.v, stored.o, stored.extra
FROM {{files}} AS stored
