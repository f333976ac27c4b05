-- dated_points: one row per point of a relation, with the instants and the basis that a file stores for it.
-- from: a relation of new points with the columns of offered_points.
-- columns: those of the relation, place, seen (when this lake first saw it), available (from when on it is known), dated_by
--   (its basis), told_at (what the provider says beside), stands_in (the rule's instant where it is not the date): microseconds.
-- As an enum Parquet writes the basis several times faster, and every reader sees text.
-- law: L1. available_at is computed_at, never before the floor; else the instant of a late arrival; else the rule's. What was
--   lost and came again otherwise, or is not known to be the same, is known from when it was seen.
SELECT *, CASE WHEN again OR NOT own OR computed < available THEN computed END AS told_at,
  CASE WHEN again AND rule < available OR own AND NOT again{{first}} AND available - rule > backfill * 1000000 THEN rule END AS stands_in
FROM (
  SELECT *,
    CASE WHEN again THEN greatest(seen, rule, computed) WHEN own THEN greatest(computed, floor * 1000000)
      WHEN late THEN greatest(seen, rule) ELSE rule END AS available,
    CASE WHEN again THEN CAST('observed' AS ENUM ('provider', 'observed', 'stated', 'assumed', 'override')) WHEN own THEN CAST('provider' AS ENUM ('provider', 'observed', 'stated', 'assumed', 'override')) WHEN late THEN CAST('observed' AS ENUM ('provider', 'observed', 'stated', 'assumed', 'override')) ELSE CAST(rule_basis AS ENUM ('provider', 'observed', 'stated', 'assumed', 'override')) END AS dated_by
  FROM (
    SELECT *, rank AS place, computed IS NOT NULL AND NOT trusted AND NOT {{late}} AS own, ruled * 1000000 AS rule,
      {{seen}} AS seen, {{late}} AS late, {{again}} AS again
    FROM {{source}}
  )
)
