-- late: fresh points that an earlier answer, asked after the instant from which they would be known, did not contain.
-- columns: body, t, tardy (always true), stood (when this lake first saw it; NULL: now), again (see regained).
-- law: L1. Such a point counts as known from when this lake first stored it. A point with computed_at is judged by earlier
--   imports of its series (dated), whatever range these had; one without by earlier answers about its t.
CREATE TEMP TABLE late AS
SELECT DISTINCT f.body, f.t, true AS tardy, CAST(NULL AS BIGINT) AS stood, false AS again
FROM fresh f JOIN prior p ON f.body = p.body AND f.t >= p.since AND f.t < p.until AND p.dated = (f.computed IS NOT NULL)
WHERE CASE WHEN p.dated THEN p.asked_at * 1000000 > greatest(f.computed, f.floor * 1000000) ELSE p.asked_at > f.ruled END
