-- event_counts: one row for each type and operation, with the number of stored events. A type without a resource is
--   one that this program does not know.
-- from: events.
-- columns: type, known, op, events.
-- law: L7. Events of unknown types are data.
SELECT entity_type AS type, resource IS NOT NULL AS known, op, CAST(count(*) AS INTEGER) AS events
FROM {{events}} GROUP BY ALL ORDER BY ALL
