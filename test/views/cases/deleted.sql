-- TIME 39: a product that is deleted is listed until just before the poll.
CREATE TEMP TABLE d AS SELECT unnest(['2024-11-12 09:59:59.999999', '2024-11-12 10:00']) AS ts;
SELECT ts, status FROM pit_universe('d') WHERE product_id = 'goes' ORDER BY ts;
/*
ts | status
2024-11-12 09:59:59.999999 | active
*/
SET VARIABLE as_of = '2024-11-12 09:59:59.999999';
SELECT status FROM universe WHERE product_id = 'goes';
/*
status
active
*/
SET VARIABLE as_of = '2024-11-12 10:00';
SELECT status FROM universe WHERE product_id = 'goes';
/*
status
*/
