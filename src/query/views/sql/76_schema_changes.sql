-- schema_changes: what of registry records was not there at the first snapshot, by the poll that first showed it; and what of
--   a metric's values was not there at first, by the points that first showed it.
-- law: L1, L7. A new key makes no version by itself; each change is told here once. Of a metric's values the first instant
--   that any point says counts: an earlier point that comes later moves it. A type that came again counts while it is the earlier one.
CREATE OR REPLACE VIEW schema_changes AS
WITH seen AS (
  SELECT metric, path, parent, type, after_type,
    min(CASE WHEN {{backfill}} THEN ruled_at ELSE available_at END) AS "at"
  FROM {{ledger value_types}}
  WHERE ({{unset as_of}} OR CASE WHEN {{backfill}} THEN ruled_at ELSE available_at END <= {{as_of}})
    AND ({{unset observed_as_of}} OR (added_at <= {{observed_as_of}} AND coalesce(removed_at > {{observed_as_of}}, true)))
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
FROM (SELECT metric, path, parent, min("at") AS "at" FROM seen WHERE after_type = '' GROUP BY ALL) AS member
JOIN seen AS above ON above.metric = member.metric AND above.path = member.parent
WHERE above.type = 'object' AND above.after_type = '' AND member."at" > above."at"
UNION ALL
SELECT metric, path, "at", 'type', before || ' to ' || type
FROM (
  SELECT metric, path, type, "at", lag(type) OVER places AS before, min("at") OVER places AS first
  FROM seen
  WHERE after_type = '' AND type <> 'null'
  WINDOW places AS (PARTITION BY metric, path ORDER BY "at", type)
)
WHERE "at" > first
UNION ALL
SELECT metric, path, again."at", 'type', again.after_type || ' to ' || type
FROM seen AS again JOIN seen AS first USING (metric, path, type) JOIN seen AS other USING (metric, path)
WHERE again.after_type = other.type AND first.after_type = '' AND other.after_type = '' AND first."at" < other."at" AND again."at" IS NOT NULL;
COMMENT ON VIEW schema_changes IS 'Changes in the form of records and values. One row for each new key of a registry record or of an object value, each value outside the documented list of its field, and each changed type.';
COMMENT ON COLUMN schema_changes.resource IS 'the resource whose records have it, or the metric whose values do';
COMMENT ON COLUMN schema_changes.path IS 'its place in the record, parts joined by dots; in a metric''s value as JSON path: $ is the value itself, [*] any place of a list';
COMMENT ON COLUMN schema_changes.first_seen IS 'the poll that first showed it; for values of a metric, when the first such point could be known';
COMMENT ON COLUMN schema_changes.kind IS 'key: a new key; value: a value outside the documented list; type: a changed type, such as a plain value that became an object';
COMMENT ON COLUMN schema_changes.value IS 'the value, or both types; NULL for a key';
