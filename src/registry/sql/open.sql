-- open: what the open records of one resource say in some fields.
-- columns: id, fields (a JSON array of texts and nulls, in the order in which they were named).
-- law: L2. Steps are only ever added; the last one of an id is its state.
SELECT id, CAST(to_json(s.fields) AS VARCHAR) AS fields
FROM (
  SELECT id, max_by({open: op IS NOT NULL, fields: {{fields}}}, "at") AS s FROM {{steps}} WHERE superseded_at IS NULL GROUP BY id
)
WHERE s.open
