-- The registry is known since the first of its snapshots, wherever that stands in the files.
SELECT known_since, snapshot_date FROM registry_start;
/*
known_since | snapshot_date
2024-11-01T06:00:00.000000Z | 2024-11-01
*/
SET VARIABLE as_of = '2024-11-01 05:59:59.999999';
SELECT known_since FROM registry_start;
/*
known_since
*/
