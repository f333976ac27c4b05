-- The end of the view points for revisable series: it keeps the last vintage of each point that the cuts left over.
-- law: L1. Vintages that were available at once are ordered by observed_at. backfill = 'rule' dates first values only
--   and does not change the order. A filter on the series or on t moves below the window; a filter on a clock must
--   not.
QUALIFY row_number() OVER (
  PARTITION BY stored.metric, stored.asset, stored."interval", stored.currency,
    stored.exchange, stored.network,
    stored.params, stored.t
  ORDER BY stored.available_at DESC, stored.observed_at DESC) = 1
