-- body_tallies_all_new: one row per body of a batch in which every offered point is new, as in body_tallies.
-- from: new_points.
-- columns: as in body_tallies.
-- law: L5.
SELECT *, kept AS added, first AS added_first, last AS added_last, 0 AS vintages
FROM (
  SELECT body, count(*) AS kept, min(t) AS first, max(t) AS last, count(json_extract(extra, '$.v')) AS beyond FROM new_points GROUP BY body
)
