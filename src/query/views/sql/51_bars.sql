-- bars: open, high, low and close of a metric on a coarser interval, computed from its finer points.
-- columns: metric, asset, interval, currency, exchange, network, t, available_at, parts, complete, open, high, low,
--   close.
-- law: L1. The values are those of resample with agg first, max, min and last. The points are read once for all four.
CREATE OR REPLACE MACRO bars(metric, from_interval, to_interval, currency := NULL, exchange := NULL, network := NULL,
  component := NULL, skip_nulls := false, min_parts := NULL, since := NULL, until := NULL,
  follow_renames := false) AS TABLE
WITH {{part coarse_parts}}
SELECT split_part(CAST(metric AS VARCHAR), '#', 1) AS metric, c.asset,
  CAST(to_interval AS VARCHAR) AS "interval", c.currency, c.exchange, c.network, c.start AS t,
  c.available_at, c.parts, c.existing_parts = c.expected_parts AS complete,
  CASE WHEN c.has_value THEN c.parts_v[1] END AS open, CASE WHEN c.has_value THEN list_max(c.parts_v) END AS high,
  CASE WHEN c.has_value THEN list_min(c.parts_v) END AS low, CASE WHEN c.has_value THEN c.parts_v[-1] END AS close
FROM _pit_coarse AS c;
COMMENT ON MACRO TABLE bars IS 'bars(metric, from_interval, to_interval): open, high, low and close of a metric on a coarser interval; available_at is that of the latest part, the values are NULL if a part is missing or null. Options as resample.';
