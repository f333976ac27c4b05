-- last_events: one row for each entity, with the hash of its last stored event.
-- from: events.
-- columns: entity_type, entity_id, hash.
-- law: L4. An event that repeats the last event of its entity is not stored again.
SELECT entity_type, entity_id, max_by(hash, {"at": "at", position: position}) AS hash
FROM {{events}} GROUP BY entity_type, entity_id
