-- gaps: windows whose points are missing for longer than the endpoint's tolerance, or are refused although the lake
--   has some of that series.
-- columns: metric, asset, interval, currency, exchange, network, since, until, missing, asked_at, state, reason.
-- law: L5, L6. The view obeys the clocks of coverage: observed_as_of, and ledger_as_of if an interface sets it.
CREATE OR REPLACE VIEW gaps AS
SELECT metric, asset, "interval", currency, exchange, network, since, until,
  {{count since until "interval"}} AS missing,
  asked_at, state, reason
FROM ({{view coverage}}) AS coverage
WHERE state = 'covered' AND reason = 'gap'
  OR state IN ('failed', 'unsupported') AND (reason LIKE 'refused since %' OR reason LIKE 'withdrawn, refused since %');
COMMENT ON VIEW gaps IS 'Time ranges in which points should exist and do not. Either the answer of the provider lacked them for longer than the tolerance, or the provider now refuses a series of which the lake has points.';
{{series_comments gaps}}
COMMENT ON COLUMN gaps.since IS 'start of the first interval without a point';
COMMENT ON COLUMN gaps.until IS 'end of the last interval without a point, exclusive';
COMMENT ON COLUMN gaps.missing IS 'how many intervals have no point';
COMMENT ON COLUMN gaps.asked_at IS 'when it was last requested';
COMMENT ON COLUMN gaps.state IS 'the state of the window in coverage. covered: the provider answered without these points, and pitlake requests them again weekly for 90 days. failed: the provider refuses the series. unsupported: the refusal lasted 30 days or was acknowledged';
COMMENT ON COLUMN gaps.reason IS 'gap, or the date and text of the refusal';
