-- coverage: the state of every window that was asked for.
-- law: L5, L6. Obeys only observed_as_of, and ledger_as_of at the doors.
CREATE OR REPLACE VIEW coverage AS
SELECT metric, asset, "interval", currency, exchange, network, since, until, state, reason,
  CASE WHEN {{by_then asked_at}} THEN asked_at END AS asked_at,
  CASE WHEN {{by_then verified_at}} THEN verified_at END AS verified_at
FROM {{ledger coverage}}
WHERE {{stands}};
COMMENT ON VIEW coverage IS 'Every window that a run requested or planned, with its state. Windows of one series are disjoint.';
{{series_comments coverage}}
COMMENT ON COLUMN coverage.since IS 'start of the window';
COMMENT ON COLUMN coverage.until IS 'end of the window, exclusive';
COMMENT ON COLUMN coverage.state IS 'covered, empty, unsupported, failed or not requested (planned by a run that ended before it could request it)';
COMMENT ON COLUMN coverage.reason IS 'why: gap or pending if points are missing in a covered window; NULL if there is no reason to give';
COMMENT ON COLUMN coverage.asked_at IS 'when it was last requested; for not requested, when that was first recorded; NULL if this is after observed_as_of';
COMMENT ON COLUMN coverage.verified_at IS 'when verify last requested a part of it again; NULL if not before observed_as_of';
