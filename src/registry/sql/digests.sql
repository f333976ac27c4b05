-- digests: what each instant brought to each day of a table as it is published, in the form of docs/proof.md.
-- columns: name, day, seen (milliseconds), n, digest.
-- law: L6. Lines are sorted by their hashes: files, layers and merging leave the digests as they are.
SELECT name, day, CAST(seen AS DOUBLE) AS seen, CAST(count(*) AS INTEGER) AS n,
  sha256(unhex(string_agg(line, '' ORDER BY line))) AS digest
FROM ({{lines}}) GROUP BY name, day, seen ORDER BY name, day, seen
