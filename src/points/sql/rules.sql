-- rules: the availability rules of the partitions of this batch; each t lies in one of its partition's.
-- columns: part, begins and ends (half-open, seconds), lag (after the interval's end) or clock (after midnight), basis, trusted.
-- law: L1.
CREATE TEMP TABLE rules AS
SELECT unnest(from_json({{json}}, '[{"part": "INTEGER", "begins": "BIGINT", "ends": "BIGINT", "lag": "BIGINT",
  "clock": "BIGINT", "basis": "VARCHAR", "trusted": "BOOLEAN"}]'), recursive := true)
