-- unresolved: when decisions about a series wait for a point that should be known and that no answer has settled.
-- columns: metric, asset, currency, exchange, network, since, until (NULL while nothing later is settled).
-- law: L1, L5. Settled is what was asked for and answered (covered but not pending, empty, unsupported), up to what is due
--   at as_of; a hole begins when its first point should be known by the rule (src/query/views/joins-beyond.ts).
CREATE OR REPLACE MACRO unresolved(metrics, "interval", currency := NULL, exchange := NULL, network := NULL, component := NULL) AS TABLE
{{part unsettled_holes}};
COMMENT ON MACRO TABLE unresolved IS 'unresolved(metrics, interval): for each series, the times from since to until (NULL: still so) at which decisions are unresolved: a newer point should be known, but the provider has not answered for its range. Options: currency, exchange, network.';
