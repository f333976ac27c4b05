-- offered: every staged point once a body.
-- columns: body, ord, rank, t, v, o, extra, computed, keep (inside the asked window and finished), compared.
-- law: L2, and nothing is kept before its interval's end or a stated instant.
CREATE TEMP TABLE offered AS
SELECT DISTINCT ON (body, s.t) body, ord, rank, s.t, s.v, s.o, s.extra, s.computed, compared,
  (since IS NULL OR s.t >= since) AND (until IS NULL OR s.t < until) AND {{floor}} <= horizon AS keep
FROM staged s JOIN bodies USING (body)
