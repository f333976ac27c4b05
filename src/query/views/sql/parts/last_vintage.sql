-- Of the rows of a point that a cut of knowledge left over the last vintage: behind the conditions of the view points.
-- law: L1. Ties by when it was observed. The rule, which stands in for first values alone, changes nothing of the order. A filter on the series or on t goes below the window, one on clocks must not.
QUALIFY row_number() OVER (PARTITION BY stored.metric, stored.asset, stored."interval", stored.currency, stored.exchange, stored.network,
    stored.params, stored.t
  ORDER BY stored.available_at DESC, stored.observed_at DESC) = 1
