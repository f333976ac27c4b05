-- late_points: one row per new point that an earlier answer, requested after the instant from which the point would be known, did not contain.
-- from: new_points, prior_answers.
-- columns: body, t, tardy (always true), stood (when this lake first saw it; NULL: now), again (see regained_verdicts).
-- law: L1. Such a point counts as known from when this lake first stored it. A point with computed_at is judged by earlier
--   imports of its series (dated), whatever range these had; one without by earlier answers about its t.
CREATE TEMP TABLE late_points AS
SELECT DISTINCT f.body, f.t, true AS tardy, CAST(NULL AS BIGINT) AS stood, false AS again
FROM new_points f JOIN prior_answers p ON f.body = p.body AND f.t >= p.since AND f.t < p.until AND p.dated = (f.computed IS NOT NULL)
WHERE CASE WHEN p.dated THEN p.asked_at * 1000000 > greatest(f.computed, f.floor * 1000000) ELSE p.asked_at > f.ruled END
