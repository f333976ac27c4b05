-- entity_records: one row per named entity of a resource: the record of its open version, and the record as last seen.
-- from: steps of its history, absorbed records.
-- columns: id, version, latest (NULL where that is the version).
-- law: L7. Both are texts as received.
WITH wanted AS (SELECT unnest(from_json({{ids}}, '["VARCHAR"]')) AS id),
last_steps AS (
  SELECT id, max_by({record: record, "at": "at"}, "at") AS s FROM {{steps}} SEMI JOIN wanted USING (id)
  WHERE superseded_at IS NULL GROUP BY id
), last_absorbed AS (
  SELECT id, max_by({record: record, "at": "at"}, "at") AS a
  FROM {{absorbed}} SEMI JOIN wanted USING (id) WHERE resource = {{resource}} GROUP BY id
)
SELECT id, s.record AS version, CASE WHEN a."at" > s."at" THEN a.record END AS latest
FROM last_steps LEFT JOIN last_absorbed USING (id) WHERE s.record IS NOT NULL
