-- A resampled metric has one row for each of its dimensions; an option leaves those that are or have none of it.
SELECT currency, exchange, network, v FROM resample('m/dims', '1h', '24h', 'sum', min_parts := 1) ORDER BY v;
/*
currency | exchange | network | v
usd | a | eth | 1
native | a | eth | 2
usd | b | eth | 4
usd | a | sol | 8
NULL | NULL | NULL | 16
usd | a | NULL | 32
NULL | a | eth | 64
usd | NULL | eth | 128
*/
SELECT list(CAST(v AS INTEGER) ORDER BY v) AS v FROM resample('m/dims', '1h', '24h', 'sum', currency := 'usd', min_parts := 1);
/*
v
[1,4,8,16,32,64,128]
*/
SELECT list(CAST(v AS INTEGER) ORDER BY v) AS v FROM resample('m/dims', '1h', '24h', 'sum', exchange := 'a', min_parts := 1);
/*
v
[1,2,8,16,32,64,128]
*/
SELECT list(CAST(v AS INTEGER) ORDER BY v) AS v FROM resample('m/dims', '1h', '24h', 'sum', network := 'eth', min_parts := 1);
/*
v
[1,2,4,16,32,64,128]
*/
