-- digests: what each instant brought to each day of a table as it is published, in the form of docs/proof.md.
-- columns: day, seen (milliseconds), n, digest.
-- law: L6. Lines are sorted by their hashes: files, layers and merging leave the digests as they are.
SELECT day, CAST(seen AS DOUBLE) AS seen, CAST(count(*) AS INTEGER) AS n,
  sha256(unhex(string_agg(line, '' ORDER BY line))) AS digest
FROM (SELECT day, seen, sha256(line) AS line FROM ({{lines}})) GROUP BY day, seen ORDER BY day, seen
