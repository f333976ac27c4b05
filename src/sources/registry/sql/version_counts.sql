-- version_counts: one row: how many entities of a registry table are open, and how many versions there ever were.
-- from: steps of its history.
-- columns: resource, open, versions.
-- law: L2. Closed versions are counted, too.
SELECT {{resource}} AS resource, CAST(count(*) FILTER (WHERE s) AS INTEGER) AS open, CAST(coalesce(sum(n), 0) AS INTEGER) AS versions
FROM (SELECT max_by(op IS NOT NULL, "at") AS s, count(op) AS n FROM {{steps}} GROUP BY id)
