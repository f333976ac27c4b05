-- When decisions about the metrics that a macro names fall into holes of what is settled.
SELECT holes.metric, holes.asset, holes.currency, holes.exchange, holes.network, holes.since, holes.until
FROM {{unsettled_of metrics}} AS holes JOIN (
  SELECT one.path, {{wanted currency one.line}} AS wanted_currency, {{wanted exchange one.line}} AS wanted_exchange, {{wanted network one.line}} AS wanted_network
  FROM (
    SELECT names.path, {{line names.path}} AS line
    FROM (SELECT DISTINCT {{path given.name}} AS path FROM (SELECT unnest(CAST(metrics AS VARCHAR[])) AS name) AS given) AS names
  ) AS one
) AS own ON holes.metric = own.path AND holes.currency IS NOT DISTINCT FROM own.wanted_currency
  AND holes.exchange IS NOT DISTINCT FROM own.wanted_exchange AND holes.network IS NOT DISTINCT FROM own.wanted_network
