-- unresolved: the times at which decisions about a series wait for a point that should be known but has not been
--   answered for.
-- columns: metric, asset, currency, exchange, network, since, until (NULL while no later range is resolved).
-- law: L1, L5. A range is resolved if it was requested and answered: covered but not pending, empty, or unsupported.
--   It counts up to the points that are expected at as_of.
--   A row begins when the first point of an unresolved range should be known by its rule
--   (src/query/views/joins-beyond.ts).
CREATE OR REPLACE MACRO unresolved(metrics, "interval", currency := NULL, exchange := NULL,
  network := NULL, component := NULL) AS TABLE
{{part unresolved_times}};
COMMENT ON MACRO TABLE unresolved IS 'unresolved(metrics, interval): for each series, the times from since to until (NULL: still so) at which decisions are unresolved: a newer point should be known, but the provider has not answered for its range. Options: currency, exchange, network.';
