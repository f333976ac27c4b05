-- A series without a dimension is one of its own, and as_of counts only what is known.
SELECT currency FROM series WHERE asset = 'dims' ORDER BY currency;
/*
currency
usd
NULL
*/
SET VARIABLE as_of = '2024-03-03 00:07';
SELECT currency, points, last_available_at FROM series WHERE metric = 'supply/current_pit' ORDER BY currency;
/*
currency | points | last_available_at
native | 2 | 2024-03-03T00:05:00.000000Z
usd | 1 | 2024-03-02T00:10:00.000000Z
*/
