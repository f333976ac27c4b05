-- TIME 23: a null is the latest knowledge, unless nulls are skipped.
CREATE TEMP TABLE d AS SELECT 'NULLS' AS asset, TIMESTAMPTZ '2024-03-04 01:00:00+00' AS ts;
SELECT t, v FROM pit_join('d', 'indicators/sopr_adjusted_pit', '24h');
/*
t | v
2024-03-03T00:00:00.000000Z | NULL
*/
SELECT t, v FROM pit_join('d', 'indicators/sopr_adjusted_pit', '24h', skip_nulls := NULL);
/*
t | v
2024-03-03T00:00:00.000000Z | NULL
*/
SELECT t, v FROM pit_join('d', 'indicators/sopr_adjusted_pit', '24h', skip_nulls := true);
/*
t | v
2024-03-02T00:00:00.000000Z | 200
*/
SELECT t, v FROM pit_window('d', 'indicators/sopr_adjusted_pit', '24h', 1, skip_nulls := NULL);
/*
t | v
2024-03-03T00:00:00.000000Z | NULL
*/
SELECT t, v FROM pit_window('d', 'indicators/sopr_adjusted_pit', '24h', 1, skip_nulls := true);
/*
t | v
2024-03-02T00:00:00.000000Z | 200
*/
SELECT t, v FROM pit_long('d', ['indicators/sopr_adjusted_pit'], '24h', skip_nulls := NULL);
/*
t | v
2024-03-03T00:00:00.000000Z | NULL
*/
SELECT t, v FROM pit_long('d', ['indicators/sopr_adjusted_pit'], '24h', skip_nulls := true);
/*
t | v
2024-03-02T00:00:00.000000Z | 200
*/
SELECT t, parts, complete, v FROM resample('indicators/sopr_adjusted_pit', '24h', '1w', 'sum', skip_nulls := NULL, min_parts := 1) WHERE asset = 'NULLS';
/*
t | parts | complete | v
2024-02-26T00:00:00.000000Z | 2 | false | NULL
*/
SELECT t, parts, complete, v FROM resample('indicators/sopr_adjusted_pit', '24h', '1w', 'sum', skip_nulls := true, min_parts := 1) WHERE asset = 'NULLS';
/*
t | parts | complete | v
2024-02-26T00:00:00.000000Z | 1 | false | 200
*/
