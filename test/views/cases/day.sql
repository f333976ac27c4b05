-- TIME 1, TIME 2, TIME 3: a day is not known while it lasts, nor before its lag.
CREATE TEMP TABLE d AS SELECT 'TWO' AS asset, unnest(['2024-03-01 12:00', '2024-03-02', '2024-03-02 00:09:59.999999',
  '2024-03-02 00:10', '2024-03-02 00:10:00.000001', '2024-03-03 00:10']) AS ts;
SELECT ts, v FROM pit_join('d', 'indicators/sopr_adjusted_pit', '24h') ORDER BY ts;
/*
ts | v
2024-03-01 12:00 | NULL
2024-03-02 | NULL
2024-03-02 00:09:59.999999 | NULL
2024-03-02 00:10 | 100
2024-03-02 00:10:00.000001 | 100
2024-03-03 00:10 | 200
*/
