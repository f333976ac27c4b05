-- versions: one row a commit.
-- law: L6. Obeys only observed_as_of, and ledger_as_of at the doors.
CREATE OR REPLACE VIEW versions AS
SELECT {{columns versions}} FROM {{ledger versions}}
WHERE {{by_then committed_at}};
COMMENT ON VIEW versions IS 'Every commit of the lake. observed_as_of selects one by its time.';
{{ledger_comments versions}}
