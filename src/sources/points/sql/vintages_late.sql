-- Which vintages are known from when this lake saw them: added to late.
-- columns: those of late.
-- law: L1. What was never observed cannot be known: history that comes with the first download is known from then on, and the
--   rule stands in for it (`again`) only where that is asked for; for a further vintage it never does.
INSERT INTO late
SELECT body, t, vintage, NULL, NOT vintage FROM fresh ANTI JOIN late USING (body, t) WHERE NOT firm
