-- _pit_decisions: the decisions of a join (asset, ts, latency), each with the instant by which its points must be
--   known.
_pit_decisions AS MATERIALIZED (
  SELECT n, asset, ts, ts - coalesce(CAST(latency AS INTERVAL), to_seconds(0)) AS known
  FROM (
    SELECT row_number() OVER () AS n, CAST(given.asset AS VARCHAR) AS asset, {{utc given.ts}} AS ts, given.latency
    FROM query_table(decisions) AS given
  )
)
