-- The first, or a later, row with something that cannot be used.
-- columns: file, n (its place in that), flag, wanted, raw.
-- law: L7.
WITH numbered AS (SELECT *, {{row}} AS n FROM {{source}}), found AS (
  SELECT * FROM (SELECT {{file}} AS file, n, CASE {{branches}} END AS told FROM numbered)
  WHERE told IS NOT NULL ORDER BY n LIMIT 1 OFFSET {{nth}} - 1
)
SELECT file, n + 1 - (SELECT min(n) FROM numbered WHERE {{file}} = file) AS n, told.* FROM found
