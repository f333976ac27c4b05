-- Of the rows of a point that a cut of knowledge left over the last vintage: behind the conditions of the view points.
-- law: L1. Ties by when it was observed. A filter on the series or on t goes below the window, one on clocks must not.
QUALIFY row_number() OVER (PARTITION BY stored.metric, stored.asset, stored."interval", stored.currency, stored.exchange, stored.network,
    stored.params, stored.t
  ORDER BY CASE WHEN {{backfill}} THEN {{ruled stored}} ELSE stored.available_at END DESC, stored.observed_at DESC) = 1
