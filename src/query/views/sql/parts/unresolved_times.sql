-- The times at which decisions about the metrics of a macro are unresolved, under its options.
-- columns: metric, asset, currency, exchange, network, since, until.
SELECT times.metric, times.asset, times.currency, times.exchange, times.network, times.since, times.until
FROM {{unresolved_times_of metrics}} AS times JOIN (
  SELECT facts.path, {{wanted currency facts.line}} AS wanted_currency,
    {{wanted exchange facts.line}} AS wanted_exchange,
    {{wanted network facts.line}} AS wanted_network
  FROM (
    SELECT names.path, {{line names.path}} AS line
    FROM (SELECT DISTINCT {{path given.name}} AS path
      FROM (SELECT unnest(CAST(metrics AS VARCHAR[])) AS name) AS given) AS names
  ) AS facts
) AS wanted ON times.metric = wanted.path AND times.currency IS NOT DISTINCT FROM wanted.wanted_currency
  AND times.exchange IS NOT DISTINCT FROM wanted.wanted_exchange AND times.network IS NOT DISTINCT FROM wanted.wanted_network
