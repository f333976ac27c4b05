-- new_points: one row per point that this batch adds.
-- from: offered_points without stored_points.
-- columns: those of offered_points.
-- law: L2, L4. Never one that is stored; the first body wins.
CREATE TEMP {{kind}} new_points AS
SELECT {{distinct}} *
FROM offered_points {{unstored}}
WHERE keep{{plain}}
{{order}}
