-- Point-in-time queries for Trino over the tables at {{uri}}. The tests of pitlake run the three queries in DuckDB only.
-- Register each table once in a catalogue `delta` (connector delta_lake), in a schema `pitlake`:
--   CALL delta.system.register_table('pitlake', 'points', '{{uri}}/points')
-- A table or view pit_decisions holds your rows: asset and ts, a timestamp with time zone, and any other columns.
-- The first relation of each query holds its options, NULL where not given; durations are seconds.

-- pit_points
WITH options AS (
  SELECT CAST(NULL AS timestamp(6) with time zone) AS as_of, CAST(NULL AS timestamp(6) with time zone) AS observed_as_of,
    'strict' AS backfill
)
{{points}};

-- pit_join
WITH options AS (
  SELECT 'supply/current_pit' AS metric, '24h' AS "interval", CAST(NULL AS varchar) AS currency,
    CAST(NULL AS varchar) AS exchange, CAST(NULL AS varchar) AS network, CAST(NULL AS double) AS max_age,
    CAST(NULL AS double) AS latency, false AS skip_nulls, CAST(NULL AS timestamp(6) with time zone) AS as_of,
    CAST(NULL AS timestamp(6) with time zone) AS observed_as_of, 'strict' AS backfill
),
{{rest pit_join}};

-- universe
WITH options AS (
  SELECT CAST(NULL AS timestamp(6) with time zone) AS as_of, CAST(NULL AS timestamp(6) with time zone) AS observed_as_of
)
{{text universe}};
