-- unsettled: when decisions about a series wait for a point that should be known and that no answer has settled.
-- columns: metric, asset, currency, exchange, network, since, until (NULL while nothing later is settled).
-- law: L1, L5. Settled is what was asked for and answered (covered but not awaited, empty, unsupported), up to what is due
--   at as_of; a hole begins when its first point should be known by the rule (src/query/views/joins-beyond.ts).
CREATE OR REPLACE MACRO unsettled(metrics, "interval", currency := NULL, exchange := NULL, network := NULL, component := NULL) AS TABLE
SELECT holes.metric, holes.asset, holes.currency, holes.exchange, holes.network, holes.since, holes.until
FROM {{unsettled_of metrics}} AS holes JOIN (
  SELECT one.path, {{wanted currency one.line}} AS wanted_currency, {{wanted exchange one.line}} AS wanted_exchange, {{wanted network one.line}} AS wanted_network
  FROM (
    SELECT names.path, {{line names.path}} AS line
    FROM (SELECT DISTINCT split_part(unnest(CAST(metrics AS VARCHAR[])), '#', 1) AS path) AS names
  ) AS one
) AS own ON holes.metric = own.path AND holes.currency IS NOT DISTINCT FROM own.wanted_currency
  AND holes.exchange IS NOT DISTINCT FROM own.wanted_exchange AND holes.network IS NOT DISTINCT FROM own.wanted_network;
COMMENT ON MACRO TABLE unsettled IS 'unsettled(metrics, interval): from when on (and until when) the joins answer decisions about a series with an old value, because a newer point should be known and no answer has settled it. Options: currency, exchange, network.';
