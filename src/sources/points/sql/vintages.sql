-- vintages: what is new of series whose values may be revised, added to fresh.
-- columns: those of fresh, then vintage (its point had a value before) and firm (its instant is the provider's own).
-- law: L2, L4. The first value stays; another one than the last is a further vintage, the same again is nothing. One asked
--   value a point and batch: the last asked. What an answer from before the last vintage (a copy out of a cache) says is none.
--   What the source dates goes between what is held by its instant, and is new where the value known right before was another.
CREATE OR REPLACE TEMP MACRO is_other(v1, o1, v2, o2) AS v1 IS DISTINCT FROM v2 OR (v1 = 0 AND signbit(v1) <> signbit(v2))
  OR (o1 IS DISTINCT FROM o2 AND CASE WHEN o1 IS NULL OR o2 IS NULL THEN true ELSE canonical(o1) <> canonical(o2) END);
ALTER TABLE fresh ADD COLUMN vintage BOOLEAN DEFAULT false;
ALTER TABLE fresh ADD COLUMN firm BOOLEAN DEFAULT true;
CREATE TEMP TABLE vintage_line AS
SELECT *, lag({'v': v, 'o': o, 'stands': stands, 'seen': seen}) OVER (PARTITION BY rank, t ORDER BY stands, seen, ord) AS before
FROM (
  SELECT rank, t, v, o, available AS stands, stored_at AS seen, -1 AS ord, CAST(NULL AS INTEGER) AS body FROM held
    SEMI JOIN (FROM bodies WHERE revisable = 'told') AS told USING (rank)
  UNION ALL
  SELECT rank, t, v, o, greatest(computed, floor * 1000000), {{now}}, ord, body FROM offered WHERE keep AND revisable = 'told'
);
INSERT INTO fresh BY NAME
SELECT o.*, l.before IS NOT NULL AS vintage, true AS firm
FROM offered AS o JOIN (
  SELECT DISTINCT ON (rank, t, stands) * FROM vintage_line
  WHERE body IS NOT NULL AND (before IS NULL OR (before.stands < stands AND is_other(before.v, before.o, v, o))) ORDER BY rank, t, stands, ord
) AS l ON o.body = l.body AND o.t = l.t AND greatest(o.computed, o.floor * 1000000) = l.stands AND NOT is_other(o.v, o.o, l.v, l.o);
INSERT INTO fresh BY NAME
SELECT o.* EXCLUDE (made), h.t IS NOT NULL AS vintage,
  o.computed IS NOT NULL AND NOT o.trusted AND (h.t IS NULL OR (o.computed > h.available AND o.computed > h.stored_at)) AS firm
FROM (
  SELECT DISTINCT ON (offered.rank, t) offered.*, bodies.horizon AS made FROM offered JOIN bodies USING (body)
  WHERE keep AND offered.revisable = 'observed' ORDER BY offered.rank, t, offered.ord DESC
) AS o
LEFT JOIN (SELECT DISTINCT ON (rank, t) * FROM held ORDER BY rank, t, available DESC, stored_at DESC) AS h ON h.rank = o.rank AND h.t = o.t
WHERE h.t IS NULL OR (o.revises AND is_other(h.v, h.o, o.v, o.o) AND h.stored_at <= (o.made + 600) * 1000000)
