-- clock_findings: facts that contradict an availability rule, the timestamp convention, an earlier answer or the
--   clock.
-- law: L6. The view obeys observed_as_of only, and ledger_as_of if an interface sets it. A finding never changes the
--   exit code of a fetch; `audit` judges it.
CREATE OR REPLACE VIEW clock_findings AS
SELECT {{columns clock_findings}} FROM {{ledger clock_findings}}
WHERE {{by_then added_at}};
COMMENT ON VIEW clock_findings IS 'Times that contradict each other, and values of revisable series that the provider no longer has.';
{{ledger_comments clock_findings}}
