-- new_vintages: adds to new_points one row per first value or further vintage of a series whose values may be revised.
-- from: offered_points, stored_points, bodies.
-- columns: those of new_points, then vintage (its point had a value before) and firm (its instant is the provider's own).
-- law: L2, L4. The first value stays; another one than the last is a further vintage, the same again is nothing. One asked
--   value a point and batch: the last asked. What an answer from before the last vintage (a copy out of a cache) says is none.
--   What the source dates goes between what is stored by its instant, and is new where the value known right before was another.
-- Dated values: `stands` is from when on one counts (never before the interval's end or a stated instant), `dated` what its source says.
--   Of several that stand at one instant the last dated counts. A value that differs from the first one of its date is no
--   vintage but a contradiction (rewritten_vintages): neither is it added, nor is what comes after it compared with it.
CREATE OR REPLACE TEMP MACRO is_other(v1, o1, d1, v2, o2, d2) AS d1 IS DISTINCT FROM d2 OR v1 IS DISTINCT FROM v2 OR coalesce(v1 = 0 AND signbit(v1) <> signbit(v2), false)
  OR (o1 IS DISTINCT FROM o2 AND CASE WHEN o1 IS NULL OR o2 IS NULL THEN true ELSE canonical_json(o1) <> canonical_json(o2) END);
ALTER TABLE new_points ADD COLUMN vintage BOOLEAN DEFAULT false;
ALTER TABLE new_points ADD COLUMN firm BOOLEAN DEFAULT true;
CREATE TEMP TABLE dated_values AS
SELECT *, first_value({'v': v, 'o': o, 'digits': digits, 'seen': seen}) OVER (PARTITION BY rank, t, dated ORDER BY ord, seen, place) AS first
FROM (
  SELECT rank, t, v, o, digits, available AS stands, coalesce(computed, available) AS dated, stored_at AS seen, -1 AS ord,
    CAST(NULL AS INTEGER) AS body, CAST(NULL AS BIGINT) AS place
  FROM stored_points SEMI JOIN (FROM bodies WHERE revisable = 'told') AS told USING (rank)
  UNION ALL
  SELECT rank, t, v, o, CASE WHEN extra IS NOT NULL THEN json_extract_string(extra, '$.v') END, greatest(computed, floor * 1000000), computed, {{now}}, ord, body, rowid
  FROM offered_points WHERE keep AND revisable = 'told'
);
INSERT INTO new_points BY NAME
SELECT o.*, l.before IS NOT NULL OR l.stored IS NOT NULL AS vintage, true AS firm
FROM offered_points AS o JOIN (
  SELECT *, lag({'v': v, 'o': o, 'digits': digits}) OVER (PARTITION BY rank, t ORDER BY stands) AS before
  FROM (
    SELECT DISTINCT ON (rank, t, stands) *, first_value(CASE WHEN body IS NULL THEN {'v': v, 'o': o, 'digits': digits} END)
      OVER (PARTITION BY rank, t, stands ORDER BY ord, seen DESC ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS stored
    FROM dated_values WHERE NOT is_other(first.v, first.o, first.digits, v, o, digits) ORDER BY rank, t, stands, dated DESC, ord, seen DESC, place
  )
) AS l ON o.rowid = l.place
WHERE (l.before IS NULL OR is_other(l.before.v, l.before.o, l.before.digits, l.v, l.o, l.digits)) AND (l.stored IS NULL OR is_other(l.stored.v, l.stored.o, l.stored.digits, l.v, l.o, l.digits));
INSERT INTO new_points BY NAME
SELECT o.* EXCLUDE (made), h.t IS NOT NULL AS vintage,
  o.computed IS NOT NULL AND NOT o.trusted AND (h.t IS NULL OR (o.computed > h.available AND o.computed > h.stored_at)) AS firm
FROM (
  SELECT DISTINCT ON (offered_points.rank, t) offered_points.*, bodies.horizon AS made FROM offered_points JOIN bodies USING (body)
  WHERE keep AND offered_points.revisable = 'observed' ORDER BY offered_points.rank, t, offered_points.ord DESC
) AS o
LEFT JOIN (SELECT DISTINCT ON (rank, t) * FROM stored_points ORDER BY rank, t, available DESC, stored_at DESC) AS h ON h.rank = o.rank AND h.t = o.t
WHERE h.t IS NULL OR (o.revises AND is_other(h.v, h.o, h.digits, o.v, o.o, CASE WHEN o.extra IS NOT NULL THEN json_extract_string(o.extra, '$.v') END) AND h.stored_at <= (o.made + 600) * 1000000)
