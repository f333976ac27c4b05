-- requests: every request to an API, without its key.
-- law: L6, L8. Obeys only observed_as_of, and ledger_as_of at the doors.
CREATE OR REPLACE VIEW requests AS
SELECT {{columns requests}} FROM {{ledger requests}}
WHERE {{by_then asked_at}};
COMMENT ON VIEW requests IS 'Every request to an API and what came of it. No key is in it.';
COMMENT ON COLUMN requests.id IS 'id of the request';
COMMENT ON COLUMN requests.run IS 'run that asked it; see runs';
COMMENT ON COLUMN requests.api IS 'metrics or registry';
COMMENT ON COLUMN requests.path IS 'path that was asked';
COMMENT ON COLUMN requests.query IS 'query parameters, JSON';
COMMENT ON COLUMN requests.series IS 'id of the series; NULL for the registry';
COMMENT ON COLUMN requests.since IS 'start of the range that was asked';
COMMENT ON COLUMN requests.until IS 'end of that range, exclusive';
COMMENT ON COLUMN requests.status IS 'HTTP status; NULL where there was no answer';
COMMENT ON COLUMN requests.outcome IS 'what the answer was taken for';
COMMENT ON COLUMN requests.points IS 'points that it brought, known ones included';
COMMENT ON COLUMN requests.bytes IS 'bytes of the body';
COMMENT ON COLUMN requests.credits IS 'what it cost';
COMMENT ON COLUMN requests.attempts IS 'how often it was sent';
COMMENT ON COLUMN requests.asked_at IS 'when it was first sent';
COMMENT ON COLUMN requests.seconds IS 'how long it took';
COMMENT ON COLUMN requests.detail IS 'reason, or words of the provider, JSON';
COMMENT ON COLUMN requests.provider_date IS 'what the provider''s clock said, by the Date of its answer; NULL where there was none';
