-- violations: values from upstream that contradict stored ones, one row for each series, t, kind and offered value,
--   and for each incident.
-- law: L2, L6. The view obeys observed_as_of only, and ledger_as_of if an interface sets it.
CREATE OR REPLACE VIEW violations AS
SELECT {{columns violations}} FROM {{ledger violations}}
WHERE {{existing_by_then}};
COMMENT ON VIEW violations IS 'Differences between stored values and later answers of the provider. The stored values stay.';
{{ledger_comments violations}}
