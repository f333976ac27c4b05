-- The steps of some history files, each with the instant of the next step of its id in them (NULL for the last step).
-- columns: those of the files, then superseded_at.
-- law: L1. A reader that knows this instant also knows the later step, and need not read the earlier one.
SELECT {{columns}}, later.next_at AS superseded_at
FROM {{source}} AS steps
LEFT JOIN (
  SELECT id, "at", lead("at") OVER (PARTITION BY id ORDER BY "at") AS next_at
  FROM (SELECT DISTINCT id, "at" FROM {{source}})
) AS later ON later.id = steps.id AND later."at" = steps."at"
