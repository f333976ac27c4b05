-- The points of a join that follows renames: each asset also has the points of its predecessors and successors. The
--   relation of points of the join stands at `body`.
-- law: L1, L2. A point of another asset counts only from the time at which the succession was known.
--   A value that was shown for a t stays. If several points have one t, the one that was known first under that name
--   counts.
--   A hand-over happens when the first point of a successor is known, and the succession too. Points of the
--   predecessor for a later t are not part of the series.
{{part successions}},
_id_paths AS (
  SELECT predecessor AS ancestor, successor AS descendant, known_at, undone_at, [predecessor, successor] AS via
  FROM _id_edges WHERE stitched
  UNION ALL
  SELECT p.ancestor, e.successor,
    greatest(p.known_at, e.known_at), least(p.undone_at, e.undone_at),
    list_append(p.via, e.successor)
  FROM _id_paths AS p JOIN _id_edges AS e ON e.predecessor = p.descendant
  WHERE e.stitched AND NOT list_contains(p.via, e.successor)
    AND greatest(p.known_at, e.known_at) < least(p.undone_at, e.undone_at)
),
_id_members AS MATERIALIZED (
  SELECT name, member, list({'known': known_at, 'until': undone_at, 'distance': distance}) AS spells
  FROM (
    SELECT ancestor AS name, descendant AS member, len(via) AS distance, known_at, undone_at FROM _id_paths
    UNION ALL SELECT descendant, ancestor, -len(via), known_at, undone_at FROM _id_paths
    UNION ALL SELECT DISTINCT unnest([ancestor, descendant]) AS asset, asset, 0,
      TIMESTAMPTZ '-infinity', TIMESTAMPTZ 'infinity'
      FROM _id_paths
  ) GROUP BY name, member
),
_id_body AS MATERIALIZED (
  SELECT *,
    concat_ws(chr(31), metric, coalesce(currency, ''), coalesce(exchange, ''), coalesce(network, '')) AS _id_key
  FROM (
{{body}}
)),
_id_handovers AS (
  SELECT f._id_key, p.ancestor AS asset, list({'since': greatest(p.known_at, f.since), 'until': p.undone_at}) AS spells
  FROM _id_paths AS p JOIN (
    SELECT _id_key, asset, min(available_at) AS since FROM _id_body WHERE "interval" IS NOT NULL GROUP BY _id_key, asset
  ) AS f ON f.asset = p.descendant
  GROUP BY f._id_key, p.ancestor
),
_id_joined AS (
  SELECT b.*, m.name, m.member, list_filter(m.spells, lambda spell: b.t < spell.until) AS known_spells,
    greatest(b.available_at, list_min(list_transform(known_spells, lambda spell: spell.known))) AS known_from
  FROM _id_body AS b
  JOIN _id_members AS m ON m.member = b.asset
  LEFT JOIN _id_handovers AS h ON h._id_key = b._id_key AND h.asset = b.asset
  WHERE len(list_filter(coalesce(h.spells, []), lambda spell: spell.since <= b.t AND b.t < spell.until)) = 0
)
SELECT metric, name AS asset, "interval", currency, exchange, network, t, known_from AS available_at, v, o{{vintage_order}}
FROM _id_joined WHERE len(known_spells) > 0
QUALIFY member = first_value(member) OVER (PARTITION BY name, _id_key, t
  ORDER BY known_from,
    list_max(list_transform(
      list_filter(known_spells, lambda spell: spell.known <= known_from),
      lambda spell: spell.distance)) DESC)
UNION ALL
SELECT * EXCLUDE (_id_key) FROM _id_body WHERE asset NOT IN (SELECT member FROM _id_members)
