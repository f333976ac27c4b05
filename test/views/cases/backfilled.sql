-- TIME 59: a backfilled point is known by the rule only on demand.
CREATE TEMP TABLE d AS SELECT 'BACK' AS asset, unnest(['2020-01-02 00:29:59', '2020-01-02 00:30', '2021-01-01', '2023-06-01']) AS ts;
SELECT ts, v FROM pit_join('d', 'indicators/sopr_adjusted_pit', '24h') ORDER BY ts;
/*
ts | v
2020-01-02 00:29:59 | NULL
2020-01-02 00:30 | NULL
2021-01-01 | NULL
2023-06-01 | 7
*/
SET VARIABLE backfill = 'rule';
SELECT ts, v FROM pit_join('d', 'indicators/sopr_adjusted_pit', '24h') ORDER BY ts;
/*
ts | v
2020-01-02 00:29:59 | NULL
2020-01-02 00:30 | 7
2021-01-01 | 7
2023-06-01 | 7
*/
