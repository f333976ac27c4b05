-- A version that a later one stands in for is still the one that was known before it came.
SELECT ticker FROM assets;
/*
ticker
NEW
*/
SET VARIABLE as_of = '2024-11-10 08:59:59.999999';
SELECT ticker FROM assets;
/*
ticker
OLD
*/
SET VARIABLE observed_as_of = '2024-12-01';
SELECT ticker FROM assets;
/*
ticker
OLD
*/
SET VARIABLE as_of = '2024-12-01';
SELECT ticker FROM assets;
/*
ticker
NEW
*/
SET VARIABLE observed_as_of = '2024-11-05';
SELECT ticker FROM assets;
/*
ticker
OLD
*/
SET VARIABLE as_of = NULL;
SELECT ticker FROM assets;
/*
ticker
OLD
*/
SET VARIABLE observed_as_of = '2024-11-10 09:00';
SELECT ticker FROM assets;
/*
ticker
NEW
*/
SET VARIABLE observed_as_of = NULL;
SET VARIABLE as_of = '2024-11-10 09:00';
SELECT ticker FROM assets;
/*
ticker
NEW
*/
SET VARIABLE as_of = '2024-11-05';
SET VARIABLE registry_backfill = true;
SELECT ticker FROM assets;
/*
ticker
OLD
*/
