-- series: the series of this batch, for finding their points in the files that are there.
-- columns: rank, part, metric, interval, asset, currency, exchange, network, params (JSON text or NULL).
-- law: L2. Dimensions match only exactly, NULL only with NULL.
CREATE TEMP TABLE series AS
SELECT unnest(from_json({{json}}, '[{"rank": "INTEGER", "part": "INTEGER", "metric": "VARCHAR",
  "interval": "VARCHAR", "asset": "VARCHAR", "currency": "VARCHAR",
  "exchange": "VARCHAR", "network": "VARCHAR", "params": "VARCHAR"}]'), recursive := true)
