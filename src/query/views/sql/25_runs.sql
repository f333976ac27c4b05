-- runs: every run of a job, its plan against what it did.
-- law: L6. Obeys only observed_as_of, and ledger_as_of at the doors: a run that had not ended by then shows no end.
CREATE OR REPLACE VIEW runs AS
SELECT {{columns runs}} FROM {{ledger runs}}
WHERE {{by_then started_at}};
COMMENT ON VIEW runs IS 'Every run: when it ran, what it planned, and what it did.';
{{ledger_comments runs}}
