-- rules: the availability rules of the partitions of this batch; each t lies in one of its partition's.
-- columns: part, begins and ends (half-open, seconds), kind (of rule) and the seconds that it counts, basis, trusted.
-- law: L1.
CREATE TEMP TABLE rules AS
SELECT unnest(from_json({{json}}, '[{"part": "INTEGER", "begins": "BIGINT", "ends": "BIGINT", "kind": "VARCHAR",
  "seconds": "BIGINT", "basis": "VARCHAR", "trusted": "BOOLEAN"}]'), recursive := true)
