-- TIME 25, TIME 26, TIME 27: max_age includes its end and never falls back; a latency comes on top.
CREATE TEMP TABLE d AS SELECT 'TWO' AS asset, unnest(['2024-03-05', '2024-03-05 00:00:00.000001']) AS ts;
SELECT ts, t, v FROM pit_join('d', 'indicators/sopr_adjusted_pit', '24h', max_age := INTERVAL 2 DAY) ORDER BY ts;
/*
ts | t | v
2024-03-05 | 2024-03-02T00:00:00.000000Z | 200
2024-03-05 00:00:00.000001 | NULL | NULL
*/
CREATE TEMP TABLE e AS SELECT 'TWO' AS asset, unnest(['2024-03-02 00:20', '2024-03-02 00:25']) AS ts;
SELECT ts, v FROM pit_join('e', 'indicators/sopr_adjusted_pit', '24h', latency := '15 minutes') ORDER BY ts;
/*
ts | v
2024-03-02 00:20 | NULL
2024-03-02 00:25 | 100
*/
