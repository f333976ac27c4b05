-- prior: earlier successful answers, for each body those of its series.
-- columns: body, since and until (half-open), asked_at (seconds).
-- law: L1. What such an answer lacked was not known when it was asked.
CREATE TEMP TABLE prior AS
SELECT unnest(from_json({{json}}, '[{"body": "INTEGER", "since": "BIGINT", "until": "BIGINT",
  "asked_at": "BIGINT"}]'), recursive := true)
