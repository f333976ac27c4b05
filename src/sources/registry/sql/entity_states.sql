-- entity_states: one row for each entity that the history of a resource ever named, with its newest state.
-- from: steps of its history, absorbed records.
-- columns: id, open, hash of the text seen last, at (microseconds: when that text was first seen), product, verified,
--   fields (a JSON array of texts and nulls in the order of the request; only of open entities).
-- law: L2. Steps are only added. The last step of an id is its state.
WITH last_steps AS (
  SELECT id, max_by({open: op IS NOT NULL, hash: hash, "at": epoch_us("at"),
    product: {{product}}, verified: {{verified}}, fields: {{fields}}}, "at") AS step
  FROM {{steps}} WHERE superseded_at IS NULL GROUP BY id
), last_absorbed AS (
  SELECT id, max_by({hash: hash, "at": epoch_us("at")}, "at") AS absorbed
  FROM {{absorbed}} WHERE resource = {{resource}} GROUP BY id
)
SELECT id, step.open AS open, step.product AS product, coalesce(step.verified, false) AS verified,
  CASE WHEN step.open AND absorbed."at" > step."at" THEN absorbed.hash ELSE step.hash END AS hash,
  CAST(CASE WHEN step.open AND absorbed."at" > step."at" THEN absorbed."at" ELSE step."at" END AS DOUBLE) AS "at",
  CASE WHEN step.open THEN CAST(to_json(step.fields) AS VARCHAR) END AS fields
FROM last_steps LEFT JOIN last_absorbed USING (id)
