-- clock_findings: what contradicts an availability rule, the timestamp convention, an earlier answer or the clock.
-- law: L6. Obeys only observed_as_of, and ledger_as_of at the doors. Never changes the exit code of a fetch; audit judges it.
CREATE OR REPLACE VIEW clock_findings AS
SELECT {{columns clock_findings}} FROM {{ledger clock_findings}}
WHERE {{by_then added_at}};
COMMENT ON VIEW clock_findings IS 'Times that contradict each other, and values of revisable series that the provider no longer has.';
{{ledger_comments clock_findings}}
