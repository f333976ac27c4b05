-- event_counts: stored events by type and operation; a type without a resource is one that this program does not know.
-- columns: type, known, op, events.
-- law: L7. Unknown types are data.
SELECT entity_type AS type, resource IS NOT NULL AS known, op, CAST(count(*) AS INTEGER) AS events
FROM {{events}} GROUP BY ALL ORDER BY ALL
