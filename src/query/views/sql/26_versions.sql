-- versions: one row a commit.
-- law: L6. Obeys only observed_as_of, and ledger_as_of at the doors.
CREATE OR REPLACE VIEW versions AS
SELECT {{columns versions}} FROM {{ledger versions}}
WHERE {{by_then committed_at}};
COMMENT ON VIEW versions IS 'Every commit of the lake. observed_as_of selects one by its time.';
COMMENT ON COLUMN versions.version IS 'number of the commit; covers all tables at once';
COMMENT ON COLUMN versions.committed_at IS 'its time, which is the observed_at of what it added; later than that of every earlier version, except after doctor --repair of a wrong clock';
COMMENT ON COLUMN versions.job IS 'what made it';
COMMENT ON COLUMN versions.run IS 'run that made it';
COMMENT ON COLUMN versions.program IS 'name and version of the program';
COMMENT ON COLUMN versions.metrics_provider IS 'provider of the metrics API';
COMMENT ON COLUMN versions.registry_provider IS 'provider of the registry';
COMMENT ON COLUMN versions.synthetic IS 'true if the data comes from the sandbox';
COMMENT ON COLUMN versions.files_added IS 'files that it added';
COMMENT ON COLUMN versions.files_removed IS 'files that this version replaced; the views no longer read them';
COMMENT ON COLUMN versions.files_dropped IS 'files that vacuum deleted from the disk';
COMMENT ON COLUMN versions.points_added IS 'points that it added';
COMMENT ON COLUMN versions.digest IS 'SHA-256 of its journal entry';
