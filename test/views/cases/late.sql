-- TIME 12: a late point is known from its own instant on.
SET VARIABLE as_of = '2024-03-04';
SELECT asset, v FROM points WHERE asset = 'LATE' ORDER BY t;
/*
asset | v
LATE | 200
*/
SET VARIABLE as_of = '2024-03-05';
SELECT asset, v FROM points WHERE asset = 'LATE' ORDER BY t;
/*
asset | v
LATE | 100
LATE | 200
*/
