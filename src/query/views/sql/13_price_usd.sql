-- price_usd: the price implied by the supply in usd and the supply in coins.
-- columns: those of points; metric is 'price_usd', and currency, exchange and network are NULL.
-- law: L1. A price is known when both of its parts are known. as_of and observed_as_of cut each part separately.
CREATE OR REPLACE VIEW price_usd AS
SELECT 'price_usd' AS metric, usd.asset, usd."interval", CAST(NULL AS VARCHAR) AS currency,
  CAST(NULL AS VARCHAR) AS exchange, CAST(NULL AS VARCHAR) AS network, usd.t,
  greatest(usd.available_at, native.available_at) AS available_at,
  greatest(usd.observed_at, native.observed_at) AS observed_at,
  CASE WHEN native.v <> 0 THEN usd.v / native.v END AS v,
  CAST(NULL AS VARCHAR) AS o,
  CASE WHEN usd.available_at >= native.available_at THEN usd.basis ELSE native.basis END AS basis,
  CAST(NULL AS VARCHAR) AS extra,
  greatest(usd.computed_at, native.computed_at) AS computed_at
FROM (
  {{points supply/current_pit}}
) AS usd
JOIN (
  {{points supply/current_pit}}
) AS native
ON native.asset = usd.asset AND native."interval" = usd."interval" AND native.t = usd.t
  AND native.exchange IS NOT DISTINCT FROM usd.exchange AND native.network IS NOT DISTINCT FROM usd.network
WHERE usd.currency = 'usd' AND native.currency = 'native'
  AND usd.metric = 'supply/current_pit' AND native.metric = 'supply/current_pit';
COMMENT ON VIEW price_usd IS 'supply/current_pit in usd divided by native, same t and interval; usable as a metric name in the joins.';
COMMENT ON COLUMN price_usd.metric IS 'always ''price_usd''';
COMMENT ON COLUMN price_usd.asset IS 'asset id of the metrics API';
COMMENT ON COLUMN price_usd."interval" IS 'interval of both parts';
COMMENT ON COLUMN price_usd.currency IS 'NULL';
COMMENT ON COLUMN price_usd.exchange IS 'NULL';
COMMENT ON COLUMN price_usd.network IS 'NULL';
COMMENT ON COLUMN price_usd.t IS 'start of the interval';
COMMENT ON COLUMN price_usd.available_at IS 'the later of both parts';
COMMENT ON COLUMN price_usd.observed_at IS 'the later of both parts';
COMMENT ON COLUMN price_usd.v IS 'usd divided by native; NULL if native is 0 or either is null';
COMMENT ON COLUMN price_usd.o IS 'NULL';
COMMENT ON COLUMN price_usd.basis IS 'basis of the part that was known later';
COMMENT ON COLUMN price_usd.extra IS 'NULL';
COMMENT ON COLUMN price_usd.computed_at IS 'the later of both parts';
