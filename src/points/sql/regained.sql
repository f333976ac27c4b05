-- regained: fresh points of months that lost some with a file, and whether they are the very same.
-- columns: body, t, rank, month, proven (the month's points have the digest of the lost ones), stood (when this lake first
--   saw it; NULL: now), tardy (an answer before that lacked it), again (it is known from when it was seen).
-- law: L1, L2. What the lake knew of the windows then says when each point was seen and whether it was late; the digest
--   proves it.
CREATE TEMP TABLE regained AS
SELECT body, t, rank, month, coalesce(sum({{hash}}) OVER (PARTITION BY rank, month) % {{modulus}} = digest, false) AS proven,
  CASE WHEN proven THEN was ELSE kept END AS stood, late OR NOT proven AS tardy, again OR NOT proven AS again
FROM ({{dated}})
