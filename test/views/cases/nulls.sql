-- TIME 23: a null is the latest knowledge, unless nulls are skipped.
CREATE TEMP TABLE d AS SELECT 'NULLS' AS asset, TIMESTAMPTZ '2024-03-04 01:00:00+00' AS ts;
SELECT t, v FROM pit_join('d', 'indicators/sopr_adjusted_pit', '24h');
/*
t | v
2024-03-03T00:00:00.000000Z | NULL
*/
SELECT t, v FROM pit_join('d', 'indicators/sopr_adjusted_pit', '24h', skip_nulls := true);
/*
t | v
2024-03-02T00:00:00.000000Z | 200
*/
