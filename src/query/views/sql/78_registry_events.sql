-- registry_events: events of the change feed as received, without repetitions.
-- columns: polled_at, position, entity_type, resource, entity_id, op, event.
-- law: L1, L7. An event of an unknown type is stored; its resource is NULL.
CREATE OR REPLACE VIEW registry_events AS
SELECT "at" AS polled_at, position, entity_type, resource, entity_id, op, event
FROM {{files events}}
WHERE ({{unset as_of}} OR "at" <= {{as_of}}) AND ({{unset observed_as_of}} OR "at" <= {{observed_as_of}});
COMMENT ON VIEW registry_events IS 'Events of the change feed of the registry, as received.';
COMMENT ON COLUMN registry_events.polled_at IS 'the poll that returned the event';
COMMENT ON COLUMN registry_events.position IS 'its place within the poll';
COMMENT ON COLUMN registry_events.entity_type IS 'as the event says';
COMMENT ON COLUMN registry_events.resource IS 'the table of that type; NULL if the type is unknown';
COMMENT ON COLUMN registry_events.entity_id IS 'id of the record, as assigned by the registry';
COMMENT ON COLUMN registry_events.op IS 'created, updated or deleted, as the event says';
COMMENT ON COLUMN registry_events.event IS 'the whole event, JSON';
