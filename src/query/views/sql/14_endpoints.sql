-- endpoints: the catalogue as a table, one row for each metric.
-- law: L1. It shows the catalogue with which the views were built, settings included. A metric of user data is listed
--   if any of its points was knowable at as_of. Everything else in this view obeys no clock.
CREATE OR REPLACE VIEW endpoints AS
SELECT * EXCLUDE (path) FROM (SELECT path AS metric, {{columns endpoints}} FROM {{ledger endpoints}}
  WHERE {{imports_known}});
COMMENT ON VIEW endpoints IS 'The catalogue: every endpoint with its value sets, defaults and availability rule.';
COMMENT ON COLUMN endpoints.metric IS 'path of the endpoint; the metric of points';
COMMENT ON COLUMN endpoints.about IS 'what it reports';
COMMENT ON COLUMN endpoints.intervals IS 'intervals that it has; empty if none';
COMMENT ON COLUMN endpoints.currencies IS 'currencies that it takes';
COMMENT ON COLUMN endpoints.exchanges IS 'exchanges that it takes';
COMMENT ON COLUMN endpoints.networks IS 'networks that it takes';
COMMENT ON COLUMN endpoints.since IS 'whether it takes the start of a range';
COMMENT ON COLUMN endpoints.until IS 'whether it takes the end of a range';
COMMENT ON COLUMN endpoints.format IS 'whether it takes a format';
COMMENT ON COLUMN endpoints.timestamp_format IS 'whether it takes a timestamp format';
COMMENT ON COLUMN endpoints.rule IS 'availability rule of the default interval, in words';
COMMENT ON COLUMN endpoints.lag_seconds IS 'lag of that rule after the end of the interval; NULL for rules that name a time of day';
COMMENT ON COLUMN endpoints.basis IS 'stated by the API description, assumed, or override of the configuration';
COMMENT ON COLUMN endpoints.quote IS 'the sentence that states the rule';
COMMENT ON COLUMN endpoints.reason IS 'why the lag was assumed';
COMMENT ON COLUMN endpoints.default_interval IS 'interval if a query names none';
COMMENT ON COLUMN endpoints.default_currency IS 'currency if a query names none';
COMMENT ON COLUMN endpoints.default_exchange IS 'exchange if a query names none';
COMMENT ON COLUMN endpoints.default_network IS 'network if a query names none';
COMMENT ON COLUMN endpoints.tolerance_seconds IS 'how long missing points are pending; NULL: the larger of 2 days and 3 intervals';
COMMENT ON COLUMN endpoints.overlap IS 'how stored points are compared with later answers';
COMMENT ON COLUMN endpoints.revisable IS 'whether a different value is a new vintage of its point; see the view vintages';
COMMENT ON COLUMN endpoints.params IS 'further fixed query parameters, JSON';
COMMENT ON COLUMN endpoints.placeholders IS 'placeholders in the path';
COMMENT ON COLUMN endpoints.rules IS 'every rule of every interval as JSON, including rules that apply only from or to a date';
COMMENT ON COLUMN endpoints.source IS 'imported for user data, else catalogue';
