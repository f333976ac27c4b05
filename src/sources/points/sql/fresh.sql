-- fresh: the points to be added.
-- columns: those of offered.
-- law: L2, L4. Never one that is held; the first body wins.
CREATE TEMP {{kind}} fresh AS
SELECT {{distinct}} *
FROM offered {{unheld}}
WHERE keep{{plain}}
{{order}}
