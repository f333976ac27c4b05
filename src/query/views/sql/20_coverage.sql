-- coverage: the state of every window that was requested.
-- law: L5, L6. The view obeys observed_as_of only, and ledger_as_of if an interface sets it.
CREATE OR REPLACE VIEW coverage AS
SELECT {{columns coverage}} FROM {{ledger coverage}}
WHERE {{existing_by_then}};
COMMENT ON VIEW coverage IS 'Every time range of a series that a run requested or planned, with its state. Ranges of one series are disjoint.';
{{ledger_comments coverage}}
