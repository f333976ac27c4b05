-- requests: every request to an API, without its key.
-- law: L6, L8. The view obeys observed_as_of only, and ledger_as_of if an interface sets it.
CREATE OR REPLACE VIEW requests AS
SELECT {{columns requests}} FROM {{ledger requests}}
WHERE {{by_then asked_at}};
COMMENT ON VIEW requests IS 'Every request to an API with its result. It contains no key.';
{{ledger_comments requests}}
