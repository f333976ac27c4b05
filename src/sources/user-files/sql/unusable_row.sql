-- The nth row with an unusable value.
-- columns: file, n (its number in the file), flag, wanted, raw.
-- law: L7. A value that cannot be stored exactly is reported with its place.
WITH numbered AS (SELECT *, {{row}} AS n FROM {{source}}), nth_fault AS (
  SELECT * FROM (SELECT {{file}} AS file, n, CASE {{branches}} END AS fault FROM numbered)
  WHERE fault IS NOT NULL ORDER BY n LIMIT 1 OFFSET {{nth}} - 1
)
SELECT file, n + 1 - (SELECT min(n) FROM numbered WHERE {{file}} = file) AS n, fault.* FROM nth_fault
