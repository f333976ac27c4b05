-- A supply in dollars is divided by that of its own network and exchange.
SELECT v FROM price_usd WHERE asset = 'PLACES' ORDER BY v;
/*
v
3
5
7
*/
