-- schema_changes: keys of records that were not there at the first snapshot, by the poll that first showed them.
-- columns: resource, path, first_seen.
-- law: L7. A new key makes no version by itself; it is told here once.
CREATE OR REPLACE VIEW schema_changes AS
SELECT resource, path, min("at") AS first_seen
FROM {{files schema_changes}}
WHERE ({{as_of}} IS NULL OR "at" <= {{as_of}}) AND ({{observed_as_of}} IS NULL OR "at" <= {{observed_as_of}})
GROUP BY resource, path
HAVING NOT bool_or(initial);
COMMENT ON VIEW schema_changes IS 'New keys of registry records, one row each.';
COMMENT ON COLUMN schema_changes.resource IS 'the resource whose records have it';
COMMENT ON COLUMN schema_changes.path IS 'where it stands in the record, parts joined by dots';
COMMENT ON COLUMN schema_changes.first_seen IS 'the poll that first showed it';
