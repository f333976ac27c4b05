-- entity_records: one row for each named entity of a resource, with the record of its open version and the record
--   seen last.
-- from: steps of its history, absorbed records.
-- columns: id, version, latest (NULL if it equals the version).
-- law: L7. Both are texts as received.
WITH requested_ids AS (SELECT unnest(from_json({{ids}}, '["VARCHAR"]')) AS id),
last_steps AS (
  SELECT id, max_by({record: record, "at": "at"}, "at") AS step FROM {{steps}} SEMI JOIN requested_ids USING (id)
  WHERE superseded_at IS NULL GROUP BY id
), last_absorbed AS (
  SELECT id, max_by({record: record, "at": "at"}, "at") AS absorbed
  FROM {{absorbed}} SEMI JOIN requested_ids USING (id) WHERE resource = {{resource}} GROUP BY id
)
SELECT id, step.record AS version, CASE WHEN absorbed."at" > step."at" THEN absorbed.record END AS latest
FROM last_steps LEFT JOIN last_absorbed USING (id) WHERE step.record IS NOT NULL
