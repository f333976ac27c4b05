-- bodies: the answers of this batch.
-- columns: body (number in the order of writing), ord (number in the order of asking; the first one wins), rank (of the
--   series in the order of the file), since and until (half-open, NULL: unbounded), asked_at, horizon (seconds),
--   compared (whether differences from what is held are violations).
-- law: L2. A point belongs to the first body that brought it.
CREATE TEMP TABLE bodies AS
SELECT unnest(from_json({{json}}, '[{"body": "INTEGER", "ord": "INTEGER", "rank": "INTEGER", "since": "BIGINT",
  "until": "BIGINT", "asked_at": "BIGINT", "horizon": "BIGINT", "compared": "BOOLEAN"}]'), recursive := true)
