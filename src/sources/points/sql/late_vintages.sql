-- late_vintages: adds to late_points one row per vintage that is known only from when this lake saw it.
-- from: new_points.
-- columns: those of late_points.
-- law: L1. What was never observed cannot be known: history that comes with the first download is known from then on, and the
--   rule stands in for it (`again`) only where that is asked for; for a further vintage it never does.
INSERT INTO late_points
SELECT body, t, vintage, NULL, NOT vintage FROM new_points ANTI JOIN late_points USING (body, t) WHERE NOT firm
