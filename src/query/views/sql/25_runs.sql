-- runs: every run of a job, its plan against what it did.
-- law: L6. Obeys only observed_as_of, and ledger_as_of at the doors: a run that had not ended by then shows no end.
CREATE OR REPLACE VIEW runs AS
SELECT id, job, command, started_at,
  CASE WHEN {{by_then ended_at}} THEN ended_at END AS ended_at,
  CASE WHEN {{by_then ended_at}} THEN stopped_by END AS stopped_by,
  CASE WHEN {{by_then ended_at}} THEN exit_code END AS exit_code,
  plan,
  CASE WHEN {{by_then ended_at}} THEN actual END AS actual
FROM {{ledger runs}}
WHERE {{by_then started_at}};
COMMENT ON VIEW runs IS 'Every run: when it ran, what it planned, and what it did.';
COMMENT ON COLUMN runs.id IS 'id of the run';
COMMENT ON COLUMN runs.job IS 'what it did: fetch, registry …';
COMMENT ON COLUMN runs.command IS 'the command as typed';
COMMENT ON COLUMN runs.started_at IS 'when it began';
COMMENT ON COLUMN runs.ended_at IS 'when it ended; NULL while it runs, or if it was killed';
COMMENT ON COLUMN runs.stopped_by IS 'what stopped it early; NULL if it finished';
COMMENT ON COLUMN runs.exit_code IS 'its exit code';
COMMENT ON COLUMN runs.plan IS 'requests, credits, points and seconds that were planned, JSON';
COMMENT ON COLUMN runs.actual IS 'what it did, JSON';
