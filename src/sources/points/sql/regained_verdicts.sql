-- regained_verdicts: one row per regained point: whether it is the lost one, and from when on it is known.
-- from: regained_points, and the months whose digest is that of the lost points.
-- columns: body, t, rank, month, proven (the month's points have the digest of the lost ones), stood (when this lake first
--   saw it; NULL: now), tardy (an answer before that lacked it), again (it is known from when it was seen).
-- law: L1, L2. The digest proves it.
CREATE TEMP TABLE regained_verdicts AS
SELECT body, epoch_us(t) // 1000000 AS t, rank, month, coalesce(same, false) AS proven,
  CASE WHEN proven THEN was ELSE kept END AS stood, late OR NOT proven AS tardy, again OR NOT proven AS again
FROM regained_points LEFT JOIN (SELECT *, true AS same FROM ({{proven}})) USING (rank, month)
