-- TIME 38: a product that retires is inactive from the poll on, and still listed.
CREATE TEMP TABLE d AS SELECT unnest(['2024-11-10 08:59:59', '2024-11-10 09:00', '2025-11-10 09:00']) AS ts;
SELECT ts, status FROM pit_universe('d') WHERE product_id = 'retires' ORDER BY ts;
/*
ts | status
2024-11-10 08:59:59 | active
2024-11-10 09:00 | inactive
2025-11-10 09:00 | inactive
*/
SET VARIABLE as_of = '2024-11-10 08:59:59';
SELECT status FROM universe WHERE product_id = 'retires';
/*
status
active
*/
SET VARIABLE as_of = '2024-11-10 09:00';
SELECT status FROM universe WHERE product_id = 'retires';
/*
status
inactive
*/
SET VARIABLE as_of = '2025-11-10 09:00';
SELECT status FROM universe WHERE product_id = 'retires';
/*
status
inactive
*/
