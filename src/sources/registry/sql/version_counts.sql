-- version_counts: one row with the number of open entities of a registry table and the number of versions it ever
--   had.
-- from: steps of its history.
-- columns: resource, open, versions.
-- law: L2. Closed versions are counted, too.
SELECT {{resource}} AS resource, CAST(count(*) FILTER (WHERE is_open) AS INTEGER) AS open,
  CAST(coalesce(sum(versions), 0) AS INTEGER) AS versions
FROM (SELECT max_by(op IS NOT NULL, "at") AS is_open, count(op) AS versions FROM {{steps}} GROUP BY id)
