-- TIME 41, TIME 53: the first snapshot stands in for the time before it from the instant on at which it was held.
CREATE TEMP TABLE d AS SELECT TIMESTAMPTZ '2024-10-01 00:00:00+00' AS ts;
SET VARIABLE registry_backfill = true;
SET VARIABLE observed_as_of = '2024-11-01 06:00';
SELECT product_id, assumed FROM pit_universe('d') ORDER BY ALL;
/*
product_id | assumed
before | true
goes | true
retires | true
*/
SET VARIABLE observed_as_of = '2024-11-01 05:59:59.999999';
SELECT product_id, assumed FROM pit_universe('d') ORDER BY ALL;
/*
product_id | assumed
*/
SET VARIABLE observed_as_of = NULL;
SET VARIABLE as_of = '2024-10-01';
SELECT product_id, assumed FROM pit_universe('d') ORDER BY ALL;
/*
product_id | assumed
before | true
goes | true
retires | true
*/
SET VARIABLE registry_backfill = false;
CREATE OR REPLACE TEMP TABLE d AS SELECT TIMESTAMPTZ '2024-11-15 00:00:00+00' AS ts;
SET VARIABLE as_of = '2024-11-12 10:00';
SELECT product_id, status, assumed FROM pit_universe('d') ORDER BY ALL;
/*
product_id | status | assumed
before | active | false
retires | inactive | false
*/
SET VARIABLE as_of = '2024-11-12 09:59:59.999999';
SELECT product_id, status, assumed FROM pit_universe('d') ORDER BY ALL;
/*
product_id | status | assumed
before | active | false
goes | active | false
retires | inactive | false
*/
