-- day_digests: one row per instant of a published table: the digest of the rows that it brought, in the form of docs/proof.md.
-- from: the rows of tables of one kind.
-- columns: table, seen (milliseconds), n, digest.
-- law: L6. Lines are sorted by their hashes: files, layers and merging leave the digests as they are.
SELECT "of table" AS "table", CAST(epoch_ms(seen) AS DOUBLE) AS seen, CAST(count(*) AS INTEGER) AS n,
  sha256(unhex(string_agg(line, '' ORDER BY line))) AS digest
FROM (SELECT "of table", {{seen}} AS seen, unnest([{{texts}}]) AS line FROM {{rows}})
WHERE line IS NOT NULL GROUP BY ALL ORDER BY ALL
