-- digests: what each instant brought to each table of a kind as it is published, in the form of docs/explanation/proof.md.
-- columns: table, seen (milliseconds), n, digest.
-- law: L6. Lines are sorted by their hashes: files, layers and merging leave the digests as they are.
SELECT "of table" AS "table", CAST(epoch_ms(seen) AS DOUBLE) AS seen, CAST(count(*) AS INTEGER) AS n,
  sha256(unhex(string_agg(line, '' ORDER BY line))) AS digest
FROM (SELECT "of table", {{seen}} AS seen, unnest([{{texts}}]) AS line FROM {{rows}})
WHERE line IS NOT NULL GROUP BY ALL ORDER BY ALL
