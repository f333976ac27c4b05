-- gaps: windows in which points are missing for longer than the endpoint's tolerance.
-- columns: metric, asset, interval, currency, exchange, network, since, until, missing, asked_at.
-- law: L5, L6. Obeys only observed_as_of, through coverage.
CREATE OR REPLACE VIEW gaps AS
SELECT metric, asset, "interval", currency, exchange, network, since, until,
  {{count since until "interval"}} AS missing,
  asked_at
FROM ({{view coverage}}) AS coverage
WHERE state = 'covered' AND reason = 'gap';
COMMENT ON VIEW gaps IS 'Windows in which the provider has no points; asked again weekly for 90 days.';
COMMENT ON COLUMN gaps.metric IS 'path of the endpoint';
COMMENT ON COLUMN gaps.asset IS 'asset id of the metrics API';
COMMENT ON COLUMN gaps."interval" IS 'interval under which the points stand';
COMMENT ON COLUMN gaps.currency IS 'native or usd; NULL where the endpoint takes none';
COMMENT ON COLUMN gaps.exchange IS 'exchange id; NULL where the endpoint takes none';
COMMENT ON COLUMN gaps.network IS 'network; NULL where the endpoint takes none';
COMMENT ON COLUMN gaps.since IS 'start of the first interval without a point';
COMMENT ON COLUMN gaps.until IS 'end of the last one, exclusive';
COMMENT ON COLUMN gaps.missing IS 'how many intervals have no point';
COMMENT ON COLUMN gaps.asked_at IS 'when it was last asked';
