-- Metrics that are known at different times after their ends stand beside each other, each row once.
CREATE TEMP TABLE decisions AS FROM (VALUES ('BTC', '2024-03-03 12:00'), ('TWO', '2024-03-03 12:00'), ('BTC', '2024-03-04')) AS d (asset, ts);
SELECT asset, ts, metric, t, v FROM pit_long('decisions', ['supply/current_pit', 'indicators/sopr_adjusted_pit'], '24h', currency := 'native')
ORDER BY asset, ts, metric;
/*
asset | ts | metric | t | v
BTC | 2024-03-03 12:00 | indicators/sopr_adjusted_pit | NULL | NULL
BTC | 2024-03-03 12:00 | supply/current_pit | 2024-03-02T00:00:00.000000Z | 0
BTC | 2024-03-04 | indicators/sopr_adjusted_pit | NULL | NULL
BTC | 2024-03-04 | supply/current_pit | 2024-03-02T00:00:00.000000Z | 0
TWO | 2024-03-03 12:00 | indicators/sopr_adjusted_pit | 2024-03-02T00:00:00.000000Z | 200
TWO | 2024-03-03 12:00 | supply/current_pit | NULL | NULL
*/
