-- clock_findings: what contradicts an availability rule or the timestamp convention.
-- law: L6. Obeys only observed_as_of, and ledger_as_of at the doors. Never changes the exit code of a fetch; audit judges it.
CREATE OR REPLACE VIEW clock_findings AS
SELECT {{columns clock_findings}} FROM {{ledger clock_findings}}
WHERE {{by_then added_at}};
COMMENT ON VIEW clock_findings IS 'Contradictory times: computed before the end of the interval, or before a stated time; start or end of the interval.';
{{ledger_comments clock_findings}}
