-- clock_findings: what contradicts an availability rule, the timestamp convention, an earlier answer or the clock.
-- law: L6. Obeys only observed_as_of, and ledger_as_of at the doors. Never changes the exit code of a fetch; audit judges it.
CREATE OR REPLACE VIEW clock_findings AS
SELECT metric, asset, "interval", currency, exchange, network, t, kind, detail, found_at
FROM {{ledger clock_findings}}
WHERE {{by_then added_at}};
COMMENT ON VIEW clock_findings IS 'Times that contradict each other, and values of revisable series that the provider no longer has.';
{{series_comments clock_findings}}
COMMENT ON COLUMN clock_findings.t IS 'start of the interval; if the finding concerns a whole answer, of its first point';
COMMENT ON COLUMN clock_findings.kind IS 'before_end: computed before the end of its interval. before_stated: computed before the time that a stated rule gives. convention: t seems to be the other edge of the interval. vanished: an answer lacks stored points of a revisable series. clock_ahead: stored while a clock was ahead, and given a new date by doctor --repair';
COMMENT ON COLUMN clock_findings.detail IS 'what was found, JSON; times in microseconds';
COMMENT ON COLUMN clock_findings.found_at IS 'when it was found';
