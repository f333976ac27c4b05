-- schema_changes: what of registry records was not there at the first snapshot, by the poll that first showed it.
-- columns: resource, path, first_seen, kind, value.
-- law: L7. A new key makes no version by itself; each change is told here once.
CREATE OR REPLACE VIEW schema_changes AS
SELECT resource, path, min("at") AS first_seen, coalesce(kind, 'key') AS kind, value
FROM {{files schema_changes}}
WHERE ({{as_of}} IS NULL OR "at" <= {{as_of}}) AND ({{observed_as_of}} IS NULL OR "at" <= {{observed_as_of}})
GROUP BY resource, path, coalesce(kind, 'key'), value
HAVING NOT bool_or(initial);
COMMENT ON VIEW schema_changes IS 'New keys of registry records, values that no document lists, other types; one row each.';
COMMENT ON COLUMN schema_changes.resource IS 'the resource whose records have it';
COMMENT ON COLUMN schema_changes.path IS 'where it stands in the record, parts joined by dots';
COMMENT ON COLUMN schema_changes.first_seen IS 'the poll that first showed it';
COMMENT ON COLUMN schema_changes.kind IS 'key: a new one; value: one that no document lists; type: a plain value became an object, or the like';
COMMENT ON COLUMN schema_changes.value IS 'the value, or both types; NULL for a key';
