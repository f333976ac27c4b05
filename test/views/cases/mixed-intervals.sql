-- TIME 31: a join of hours and one of days answer each in their own steps.
CREATE TEMP TABLE d AS SELECT 'MIX' AS asset, unnest(['2024-03-01 23:00', '2024-03-02']) AS ts;
SELECT ts, v FROM pit_join('d', 'indicators/sopr_adjusted_pit', '24h') ORDER BY ts;
/*
ts | v
2024-03-01 23:00 | 29
2024-03-02 | 1
*/
SELECT ts, v FROM pit_join('d', 'indicators/sopr_adjusted_pit', '1h') ORDER BY ts;
/*
ts | v
2024-03-01 23:00 | 22
2024-03-02 | 23
*/
