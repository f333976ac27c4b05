-- A calendar steps months by the calendar from its beginning, ends before its end, and goes forward only.
SELECT strftime(timezone('UTC', ts), '%m-%d %H') AS ts FROM calendar('2024-01-31', '2024-05-01', '1 month');
/*
ts
01-31 00
02-29 00
03-31 00
04-30 00
*/
SELECT strftime(timezone('UTC', ts), '%m-%d %H') AS ts FROM calendar('2024-01-31', '2024-04-02', '1 month 12 hours');
/*
ts
01-31 00
02-29 12
04-01 00
*/
SELECT strftime(timezone('UTC', ts), '%m-%d %H') AS ts FROM calendar('2024-02-28', '2024-03-02');
/*
ts
02-28 00
02-29 00
03-01 00
*/
SELECT count(*) AS rows, min(ts) AS first, max(ts) AS last FROM calendar('2024-01-01', '2024-01-01 00:00:00.000002', '1 microsecond');
/*
rows | first | last
2 | 2024-01-01T00:00:00.000000Z | 2024-01-01T00:00:00.000001Z
*/
SELECT count(*) AS rows FROM calendar('2024-01-02', '2024-01-02');
/*
rows
0
*/
SELECT count(*) AS rows FROM calendar('2024-02-01', '2024-01-01', '1 year');
/*
rows
0
*/
