-- How many steps of a history file are said to be superseded by a step that is not in the same file.
-- columns: rows.
-- law: L1, L3. A file in which one is would hide a record; it is not taken.
SELECT count(*) AS rows FROM {{source}} AS steps
ANTI JOIN (SELECT id, "at" FROM {{source}}) AS later ON later.id = steps.id AND later."at" = steps.superseded_at AND later."at" > steps."at"
WHERE steps.superseded_at IS NOT NULL
