-- offered_points: one row per staged point and body, with what the rules of its partition say of it.
-- from: staged_points (restored_points if points were lost), bodies, rules.
-- columns: body, ord, rank, part, t, v, o, extra, computed, compared, close (end of the interval, seconds), backfill, ruled (from
--   when on it is knowable by the rule), floor (before which it never is), rule_basis, trusted, keep (inside the
--   asked window and finished); what was unfinished when the answer was made contradicts nothing.
-- law: L2, and nothing is kept before its interval's end or a stated instant.
CREATE TEMP {{kind}} offered_points AS
SELECT {{distinct}} * EXCLUDE (since, until, horizon) REPLACE (compared AND floor <= horizon AS compared),
  (since IS NULL OR t >= since) AND (until IS NULL OR t < until) AND floor <= horizon AS keep
FROM (
  SELECT *, CASE WHEN rule_basis = 'stated' THEN ruled ELSE close END AS floor
  FROM (
    SELECT * EXCLUDE ("interval", asked_at, own_asset, own_metric, begins, ends, kind, seconds), {{instant}} AS ruled
    FROM (SELECT *, {{close}} AS close FROM {{told}})
  )
)
