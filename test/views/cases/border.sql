-- TIME 42: where two versions meet there is exactly one.
SELECT status, valid_to FROM history.products WHERE id = 'retires' ORDER BY valid_from;
/*
status | valid_to
active | 2024-11-10T09:00:00.000000Z
inactive | infinity
*/
SELECT status FROM history.products
WHERE id = 'retires' AND valid_from <= TIMESTAMPTZ '2024-11-10 09:00:00+00' AND TIMESTAMPTZ '2024-11-10 09:00:00+00' < valid_to;
/*
status
inactive
*/
SELECT id FROM history.products WHERE valid_from >= valid_to;
/*
id
*/
