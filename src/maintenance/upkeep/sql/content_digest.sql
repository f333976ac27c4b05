-- The content of some files as numbers that do not depend on the order of rows nor on their spread over files.
-- columns: rows, digest (sum of the hashes of all rows over all columns), minus_zero (whether a -0.0 is inside).
-- law: L3, L7. Files are exchanged only for files with the same rows and digest; a hash takes -0.0 for 0.0, so the
--   sign of every double is hashed beside it.
SELECT count(*) AS rows, {{digest}} AS digest, coalesce(bool_or({{minus_zero}}), false) AS minus_zero FROM {{source}}
