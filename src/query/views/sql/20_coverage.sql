-- coverage: the state of every window that was asked for.
-- law: L5, L6. Obeys only observed_as_of, and ledger_as_of at the doors.
CREATE OR REPLACE VIEW coverage AS
SELECT {{columns coverage}} FROM {{ledger coverage}}
WHERE {{stands}};
COMMENT ON VIEW coverage IS 'Every time range of a series that a run requested or planned, with its state. Ranges of one series are disjoint.';
{{ledger_comments coverage}}
