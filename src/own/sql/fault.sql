-- The first, or a later, row with something that cannot be used.
-- columns: file, n (its place among all rows), flag, wanted, raw.
-- law: L7.
SELECT * EXCLUDE (told), told.* FROM (
  SELECT {{file}} AS file, n, CASE {{branches}} END AS told
  FROM (SELECT *, {{row}} AS n FROM {{source}})
) WHERE told IS NOT NULL ORDER BY n LIMIT 1 OFFSET {{nth}} - 1
