-- entity_states: one row per entity of a resource that history ever named: its newest state.
-- from: steps of its history, absorbed records.
-- columns: id, open, hash of the text as last seen, at (microseconds, when that text was first seen), product, verified,
--   fields (a JSON array of texts and nulls, in the order in which they were named; of open ones).
-- law: L2. Steps are only ever added; the last one of an id is its state.
WITH last_steps AS (
  SELECT id, max_by({open: op IS NOT NULL, hash: hash, "at": epoch_us("at"), product: {{product}}, verified: {{verified}}, fields: {{fields}}}, "at") AS s
  FROM {{steps}} WHERE superseded_at IS NULL GROUP BY id
), last_absorbed AS (
  SELECT id, max_by({hash: hash, "at": epoch_us("at")}, "at") AS a FROM {{absorbed}} WHERE resource = {{resource}} GROUP BY id
)
SELECT id, s.open AS open, s.product AS product, coalesce(s.verified, false) AS verified,
  CASE WHEN s.open AND a."at" > s."at" THEN a.hash ELSE s.hash END AS hash,
  CAST(CASE WHEN s.open AND a."at" > s."at" THEN a."at" ELSE s."at" END AS DOUBLE) AS "at",
  CASE WHEN s.open THEN CAST(to_json(s.fields) AS VARCHAR) END AS fields
FROM last_steps LEFT JOIN last_absorbed USING (id)
