-- TIME 53: observed_as_of takes back what was not held yet.
SELECT asset, v FROM points WHERE asset IN ('SEEN', 'TWO') ORDER BY asset, t;
/*
asset | v
SEEN | 1
TWO | 100
TWO | 200
*/
SET VARIABLE observed_as_of = '2030-01-31';
SELECT asset, v FROM points WHERE asset IN ('SEEN', 'TWO') ORDER BY asset, t;
/*
asset | v
TWO | 100
TWO | 200
*/
