-- The lake has a price since it has both of its parts, whichever came first.
SELECT v, observed_at FROM price_usd WHERE asset = 'HALVES' ORDER BY t;
/*
v | observed_at
3 | 2030-01-01T00:00:00.000000Z
4 | 2030-01-01T00:00:00.000000Z
*/
SET VARIABLE observed_as_of = '2029-12-31 23:59:59';
SELECT v FROM price_usd WHERE asset = 'HALVES';
/*
v
*/
