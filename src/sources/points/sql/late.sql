-- late: fresh points that an earlier answer, asked after the rule's instant, did not contain.
-- columns: body, t, tardy (always true), stood (when this lake first saw it; NULL: now), again (see regained).
-- law: L1. Without computed_at such a point counts as known from when this lake first held it.
CREATE TEMP TABLE late AS
SELECT DISTINCT f.body, f.t, true AS tardy, CAST(NULL AS BIGINT) AS stood, false AS again
FROM fresh f JOIN prior p ON f.body = p.body AND f.t >= p.since AND f.t < p.until
WHERE f.computed IS NULL AND p.asked_at > f.ruled
