-- Of several snapshots of a day the last one that was known is shown; a delta replaces what its base says of an entity.
SELECT snapshot_date, name FROM snapshots.venues ORDER BY ALL;
/*
snapshot_date | name
2024-11-01 | One
2024-11-01 | Two
2024-11-12 | Drei
2024-11-12 | Ein
*/
SET VARIABLE as_of = '2024-11-12 20:00';
SELECT name, as_of, observed_at FROM snapshots.venues WHERE snapshot_date = '2024-11-12' ORDER BY ALL;
/*
name | as_of | observed_at
Drei | b2 d2 | 2024-11-12T20:00:00.000000Z
Ein | b2 d2 | 2024-11-12T20:00:00.000000Z
*/
SET VARIABLE as_of = '2024-11-12 19:59:59.999999';
SELECT name, as_of, observed_at FROM snapshots.venues WHERE snapshot_date = '2024-11-12' ORDER BY ALL;
/*
name | as_of | observed_at
Due | b2 null | 2024-11-12T10:00:00.000000Z
Uno | b2 null | 2024-11-12T10:00:00.000000Z
*/
SET VARIABLE as_of = '2024-11-12 10:00';
SELECT snapshot_date, name FROM snapshots.venues ORDER BY ALL;
/*
snapshot_date | name
2024-11-01 | One
2024-11-01 | Two
2024-11-12 | Due
2024-11-12 | Uno
*/
SET VARIABLE as_of = '2024-11-01 05:59:59.999999';
SELECT count(*) AS known FROM snapshots.venues;
/*
known
0
*/
