-- TIME 32: a missing part is no smaller sum.
SELECT t, available_at, parts, complete, v FROM resample('indicators/sopr_adjusted_pit', '1h', '24h', 'sum')
WHERE asset = 'PARTS' ORDER BY t;
/*
t | available_at | parts | complete | v
2024-03-01T00:00:00.000000Z | 2024-03-09T00:00:00.000000Z | 24 | true | 24
2024-03-02T00:00:00.000000Z | 2024-03-03T00:23:00.000000Z | 23 | false | NULL
*/
