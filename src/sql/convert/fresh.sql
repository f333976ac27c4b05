-- fresh: the points to be added, in the order of the file.
-- columns: body, ord, rank, t, v, o, extra, computed.
-- law: L2, L4. Never one that is held; the first body wins.
CREATE TEMP TABLE fresh AS
SELECT DISTINCT ON (rank, t) body, ord, rank, t, v, o, extra, computed
FROM offered ANTI JOIN held USING (rank, t)
WHERE keep
ORDER BY rank, t, ord
