-- violations: upstream values that contradict stored ones.
-- law: L2, L6. Obeys only observed_as_of, and ledger_as_of at the doors. One row per series, t, kind and offered value, and
--   the like of each incident.
CREATE OR REPLACE VIEW violations AS
SELECT {{columns violations}} FROM {{ledger violations}}
WHERE {{stands}};
COMMENT ON VIEW violations IS 'Differences between stored values and later answers of the provider. The stored values stay.';
{{ledger_comments violations}}
