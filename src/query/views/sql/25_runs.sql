-- runs: one row for each run of a job, with its plan and its result.
-- law: L6. The view obeys observed_as_of only, and ledger_as_of if an interface sets it. A run that had not ended by
--   then shows no end.
CREATE OR REPLACE VIEW runs AS
SELECT {{columns runs}} FROM {{ledger runs}}
WHERE {{by_then started_at}};
COMMENT ON VIEW runs IS 'Every run: when it ran, what it planned, and what it did.';
{{ledger_comments runs}}
