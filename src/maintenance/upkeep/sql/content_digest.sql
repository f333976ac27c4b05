-- The content of some files as three numbers that depend neither on the order of rows nor on how the files divide
--   them.
-- columns: rows, digest (sum of the hashes of all rows over all columns), minus_zero (whether any value is -0.0).
-- law: L3, L7. Files are replaced only by files with the same rows and digest. A hash treats -0.0 as 0.0, so the sign
--   of every double is hashed, too.
SELECT count(*) AS rows, {{digest}} AS digest, coalesce(bool_or({{minus_zero}}), false) AS minus_zero FROM {{source}}
