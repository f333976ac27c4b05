-- regained: what came of months that lost points, and whether they are the very same.
-- columns: body, t, rank, month, proven (the month's points have the digest of the lost ones), stood (when this lake first
--   saw it; NULL: now), tardy (an answer before that lacked it), again (it is known from when it was seen).
-- law: L1, L2. The digest proves it.
CREATE TEMP TABLE regained AS
SELECT body, epoch_us(t) // 1000000 AS t, rank, month, coalesce(same, false) AS proven,
  CASE WHEN proven THEN was ELSE kept END AS stood, late OR NOT proven AS tardy, again OR NOT proven AS again
FROM came LEFT JOIN (SELECT *, true AS same FROM ({{proven}})) USING (rank, month)
