-- versions: one row for each commit.
-- law: L6. The view obeys observed_as_of only, and ledger_as_of if an interface sets it.
CREATE OR REPLACE VIEW versions AS
SELECT {{columns versions}} FROM {{ledger versions}}
WHERE {{by_then committed_at}};
COMMENT ON VIEW versions IS 'Every commit of the lake. observed_as_of selects one by its time.';
{{ledger_comments versions}}
