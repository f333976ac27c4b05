-- bodies: the answers of this batch, each with the interval of its partition.
-- columns: body (number in the order of writing), part (of the partition), ord (number in the order of asking; the first
--   one wins), rank (of the series in the order of writing), since and until (half-open, NULL: unbounded), asked_at, horizon
--   (seconds), compared (whether differences from what is held are violations), interval, backfill
--   (how many seconds later than its rule a point counts as backfilled).
-- law: L2. A point belongs to the first body that brought it.
CREATE TEMP TABLE bodies AS
SELECT unnest(from_json({{json}}, '[{"body": "INTEGER", "part": "INTEGER", "ord": "INTEGER", "rank": "INTEGER",
  "since": "BIGINT", "until": "BIGINT", "asked_at": "BIGINT", "horizon": "BIGINT", "compared": "BOOLEAN",
  "interval": "VARCHAR", "backfill": "BIGINT"}]'), recursive := true)
