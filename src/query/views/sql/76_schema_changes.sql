-- schema_changes: new keys, new types and undocumented values of registry records, and new keys and types of a
--   metric's values.
-- columns: resource, path, first_seen, kind, value.
-- law: L1, L7. A new key creates no version. Each change has one row here.
--   A change of registry records is dated by the poll that first showed it. What the first snapshot had is not a
--   change.
--   A change of a metric's values is dated by the earliest available_at of the points that show it. A point that
--   arrives later but was known earlier moves that date back.
--   A return to a type counts only if that type was first seen before the type that it replaces.
CREATE OR REPLACE VIEW schema_changes AS
WITH types_seen AS (
  SELECT metric, path, parent, type, after_type,
    min(CASE WHEN {{backfill}} THEN ruled_at ELSE available_at END) AS "at"
  FROM {{ledger value_types}}
  WHERE ({{unset as_of}} OR CASE WHEN {{backfill}} THEN ruled_at ELSE available_at END <= {{as_of}})
    AND ({{unset observed_as_of}} OR (added_at <= {{observed_as_of}}
      AND coalesce(removed_at > {{observed_as_of}}, true)))
    AND (NOT {{unset observed_as_of}} OR removed_at IS NULL)
  GROUP BY ALL
)
SELECT resource, path, min("at") AS first_seen, coalesce(kind, 'key') AS kind, value
FROM {{files schema_changes}}
WHERE ({{unset as_of}} OR "at" <= {{as_of}}) AND ({{unset observed_as_of}} OR "at" <= {{observed_as_of}})
GROUP BY resource, path, coalesce(kind, 'key'), value
HAVING NOT bool_or(initial)
UNION ALL
SELECT member.metric, member.path, member."at", 'key', NULL
FROM (SELECT metric, path, parent, min("at") AS "at" FROM types_seen WHERE after_type = '' GROUP BY ALL) AS member
JOIN types_seen AS parent_value ON parent_value.metric = member.metric AND parent_value.path = member.parent
WHERE parent_value.type = 'object' AND parent_value.after_type = '' AND member."at" > parent_value."at"
UNION ALL
SELECT metric, path, "at", 'type', earlier_type || ' to ' || type
FROM (
  SELECT metric, path, type, "at", lag(type) OVER by_path AS earlier_type, min("at") OVER by_path AS first_at
  FROM types_seen
  WHERE after_type = '' AND type <> 'null'
  WINDOW by_path AS (PARTITION BY metric, path ORDER BY "at", type)
)
WHERE "at" > first_at
UNION ALL
SELECT metric, path, returned."at", 'type', returned.after_type || ' to ' || type
FROM types_seen AS returned
JOIN types_seen AS first_type USING (metric, path, type)
JOIN types_seen AS next_type USING (metric, path)
WHERE returned.after_type = next_type.type AND first_type.after_type = '' AND next_type.after_type = ''
  AND first_type."at" < next_type."at" AND returned."at" IS NOT NULL;
COMMENT ON VIEW schema_changes IS 'Changes in the form of records and values. One row for each new key of a registry record or of an object value, each value outside the documented list of its field, and each changed type.';
COMMENT ON COLUMN schema_changes.resource IS 'the resource whose records have it, or the metric whose values do';
COMMENT ON COLUMN schema_changes.path IS 'its place in the record, parts joined by dots; in a metric''s value as JSON path: $ is the value itself, [*] any place of a list';
COMMENT ON COLUMN schema_changes.first_seen IS 'the poll that first showed it; for values of a metric, when the first such point could be known';
COMMENT ON COLUMN schema_changes.kind IS 'key: a new key; value: a value outside the documented list; type: a changed type, such as a plain value that became an object';
COMMENT ON COLUMN schema_changes.value IS 'the value, or both types; NULL for a key';
