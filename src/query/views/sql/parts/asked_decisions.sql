-- The decisions of a join, each with the instant at which its points must be known: asset, ts and latency of a relation.
_pit_decisions AS MATERIALIZED (
  SELECT n, asset, ts, ts - coalesce(CAST(latency AS INTERVAL), to_seconds(0)) AS known
  FROM (
    SELECT row_number() OVER () AS n, CAST(given.asset AS VARCHAR) AS asset, {{utc given.ts}} AS ts, given.latency FROM query_table(decisions) AS given
  )
)
