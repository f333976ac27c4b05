-- How many steps of a history file claim to be superseded although that file has no later step at that instant.
-- columns: rows.
-- law: L1, L3. One such step would hide a record, so a file with any is rejected.
SELECT count(*) AS rows FROM {{source}} AS steps
ANTI JOIN (SELECT id, "at" FROM {{source}}) AS later
  ON later.id = steps.id AND later."at" = steps.superseded_at
    AND later."at" > steps."at"
WHERE steps.superseded_at IS NOT NULL
