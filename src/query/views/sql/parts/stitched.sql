-- The points of a join with those of predecessors and successors under each of their names, around its relation of points.
-- law: L1, L2. Nothing of another name counts before the succession was known, and what was told of a t stays: of several
--   points of one t the first that was known under the name. What a predecessor tells of a t behind the hand-over (the first
--   point of its successor is known, and so is that it is one) is no part of the series.
{{part successions}},
_id_paths AS (
  SELECT predecessor AS ancestor, successor AS descendant, known_at, undone_at, [predecessor, successor] AS via FROM _id_edges WHERE stitched
  UNION ALL
  SELECT p.ancestor, e.successor, greatest(p.known_at, e.known_at), least(p.undone_at, e.undone_at), list_append(p.via, e.successor)
  FROM _id_paths AS p JOIN _id_edges AS e ON e.predecessor = p.descendant
  WHERE e.stitched AND NOT list_contains(p.via, e.successor) AND greatest(p.known_at, e.known_at) < least(p.undone_at, e.undone_at)
),
_id_members AS MATERIALIZED (
  SELECT name, member, list({'known': known_at, 'until': undone_at, 'place': place}) AS spells FROM (
    SELECT ancestor AS name, descendant AS member, len(via) AS place, known_at, undone_at FROM _id_paths
    UNION ALL SELECT descendant, ancestor, -len(via), known_at, undone_at FROM _id_paths
    UNION ALL SELECT DISTINCT unnest([ancestor, descendant]) AS own, own, 0, TIMESTAMPTZ '-infinity', TIMESTAMPTZ 'infinity' FROM _id_paths
  ) GROUP BY name, member
),
_id_body AS MATERIALIZED (SELECT *, concat_ws(chr(31), metric, coalesce(currency, ''), coalesce(exchange, ''), coalesce(network, '')) AS _id_key FROM (
{{body}}
)),
_id_handed AS (
  SELECT f._id_key, p.ancestor AS asset, list({'since': greatest(p.known_at, f.since), 'until': p.undone_at}) AS spells
  FROM _id_paths AS p JOIN (
    SELECT _id_key, asset, min(available_at) AS since FROM _id_body WHERE "interval" IS NOT NULL GROUP BY _id_key, asset
  ) AS f ON f.asset = p.descendant
  GROUP BY f._id_key, p.ancestor
),
_id_joined AS (
  SELECT b.*, m.name, m.member, list_filter(m.spells, lambda one: b.t < one.until) AS here,
    greatest(b.available_at, list_min(list_transform(here, lambda one: one.known))) AS known_from
  FROM _id_body AS b JOIN _id_members AS m ON m.member = b.asset LEFT JOIN _id_handed AS h ON h._id_key = b._id_key AND h.asset = b.asset
  WHERE len(list_filter(coalesce(h.spells, []), lambda one: one.since <= b.t AND b.t < one.until)) = 0
)
SELECT metric, name AS asset, "interval", currency, exchange, network, t, known_from AS available_at, v, o{{told_order}}
FROM _id_joined WHERE len(here) > 0
QUALIFY member = first_value(member) OVER (PARTITION BY name, _id_key, t
  ORDER BY known_from, list_max(list_transform(list_filter(here, lambda one: one.known <= known_from), lambda one: one.place)) DESC)
UNION ALL
SELECT * EXCLUDE (_id_key) FROM _id_body WHERE asset NOT IN (SELECT member FROM _id_members)
