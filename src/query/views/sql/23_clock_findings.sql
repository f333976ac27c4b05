-- clock_findings: what contradicts an availability rule or the timestamp convention.
-- law: L6. Obeys only observed_as_of, and ledger_as_of at the doors. Never changes the exit code of a fetch; audit judges it.
CREATE OR REPLACE VIEW clock_findings AS
SELECT metric, asset, "interval", currency, exchange, network, t, kind, detail, found_at
FROM {{ledger clock_findings}}
WHERE {{by_then added_at}};
COMMENT ON VIEW clock_findings IS 'Contradictory times: computed before the end of the interval, or before a stated time; start or end of the interval.';
{{series_comments clock_findings}}
COMMENT ON COLUMN clock_findings.t IS 'start of the interval; if the finding concerns a whole answer, of its first point';
COMMENT ON COLUMN clock_findings.kind IS 'before_end, before_stated or convention; vanished: points of a revisable series that an answer about them lacks';
COMMENT ON COLUMN clock_findings.detail IS 'the times that contradict each other, JSON, microseconds';
COMMENT ON COLUMN clock_findings.found_at IS 'when it was found';
