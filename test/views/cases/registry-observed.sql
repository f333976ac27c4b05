-- TIME 53: what the lake held of the registry by then: its very instant counts.
SET VARIABLE observed_as_of = '2024-11-12 10:00';
SELECT polled_at, position, entity_id FROM registry_events ORDER BY ALL;
/*
polled_at | position | entity_id
2024-11-10T09:00:00.000000Z | 1 | retires
2024-11-12T10:00:00.000000Z | 1 | goes
2024-11-12T10:00:00.000000Z | 2 | goes
*/
SELECT found_at, id FROM registry_findings ORDER BY ALL;
/*
found_at | id
2024-11-10T09:00:00.000000Z | retires
2024-11-12T10:00:00.000000Z | goes
*/
SET VARIABLE observed_as_of = '2024-11-12 09:59:59.999999';
SELECT (SELECT count(*) FROM registry_events) AS events, (SELECT count(*) FROM registry_findings) AS findings;
/*
events | findings
1 | 1
*/
SET VARIABLE observed_as_of = '2024-11-10 09:00';
SELECT path, first_seen FROM schema_changes;
/*
path | first_seen
$.late | 2024-11-10T09:00:00.000000Z
*/
SET VARIABLE observed_as_of = '2024-11-10 08:59:59.999999';
SELECT (SELECT count(*) FROM registry_events) AS events, (SELECT count(*) FROM schema_changes) AS keys;
/*
events | keys
0 | 0
*/
SET VARIABLE observed_as_of = '2024-11-01 06:00';
SELECT known_since FROM registry_start;
/*
known_since
2024-11-01T06:00:00.000000Z
*/
SET VARIABLE observed_as_of = '2024-11-01 05:59:59.999999';
SELECT known_since FROM registry_start;
/*
known_since
*/
SET VARIABLE observed_as_of = NULL;
SELECT path, first_seen FROM schema_changes;
/*
path | first_seen
$.late | 2024-11-10T09:00:00.000000Z
*/
SELECT known_since, source FROM registry_start;
/*
known_since | source
2024-11-01T06:00:00.000000Z | NULL
*/
