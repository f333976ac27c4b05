-- The price in dollars has both parts, the later of their instants, and is null where there is nothing to divide by.
SELECT CAST(CAST(t AS DATE) AS VARCHAR) AS d, available_at, v, basis, currency FROM price_usd WHERE asset = 'BTC' ORDER BY t;
/*
d | available_at | v | basis | currency
2024-03-01 | 2024-03-02T00:20:00.000000Z | 25 | provider | NULL
2024-03-02 | 2024-03-03T00:10:00.000000Z | NULL | stated | NULL
2024-03-03 | 2024-03-04T00:10:00.000000Z | NULL | stated | NULL
*/
SET VARIABLE as_of = '2024-03-02 00:19:59';
SELECT v FROM price_usd;
/*
v
*/
