-- requests: every request to an API, without its key.
-- law: L6, L8. Obeys only observed_as_of, and ledger_as_of at the doors.
CREATE OR REPLACE VIEW requests AS
SELECT {{columns requests}} FROM {{ledger requests}}
WHERE {{by_then asked_at}};
COMMENT ON VIEW requests IS 'Every request to an API and what came of it. No key is in it.';
{{ledger_comments requests}}
