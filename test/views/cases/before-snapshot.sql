-- TIME 41: before the first snapshot nothing is known, and that is said; assumed on demand.
CREATE TEMP TABLE d AS SELECT TIMESTAMPTZ '2024-10-01 00:00:00+00' AS ts;
SELECT status FROM pit_universe('d');
/*
status
*/
SET VARIABLE as_of = '2024-10-01';
SELECT product_id FROM universe;
/*
product_id
*/
SELECT count(*) AS known FROM registry_start;
/*
known
0
*/
SET VARIABLE registry_backfill = true;
SELECT product_id, assumed FROM universe ORDER BY product_id;
/*
product_id | assumed
before | true
goes | true
retires | true
*/
