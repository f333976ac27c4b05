-- differing_points: one row per offered point that differs from the known one.
-- from: offered_points, known_points.
-- columns: body, t, kind (changed, null_filled, computed_at_changed), stored and offered (JSON texts), stored_at.
-- law: L2. Doubles are compared bit by bit, integers beyond them by their digits, objects as JSON; a computed_at that comes or goes is none.
WITH pairs AS (
  SELECT p.body, p.t, k.stored_at, k.v AS kv, k.o AS ko, k.digits AS kd, k.computed AS kc, p.v, p.o, p.digits, p.computed, p.clocked,
    k.v IS DISTINCT FROM p.v OR (k.v = 0 AND signbit(k.v) <> signbit(p.v)) OR k.digits IS DISTINCT FROM p.digits OR (k.o IS DISTINCT FROM p.o
      AND CASE WHEN k.o IS NULL OR p.o IS NULL THEN true ELSE canonical_json(k.o) <> canonical_json(p.o) END) AS differs
  FROM (SELECT *, CASE WHEN extra IS NOT NULL THEN json_extract_string(extra, '$.v') END AS digits FROM offered_points) p JOIN known_points k ON p.rank = k.rank AND p.t = k.t AND k.ord < p.ord
  WHERE p.compared AND (k.v IS DISTINCT FROM p.v OR k.v = 0 OR k.digits IS DISTINCT FROM p.digits OR k.o IS DISTINCT FROM p.o OR k.computed IS DISTINCT FROM p.computed)
)
SELECT body, t, CASE WHEN kv IS NULL AND ko IS NULL THEN 'null_filled' ELSE 'changed' END AS kind,
  coalesce(ko, kd, CAST(kv AS VARCHAR), 'null') AS stored, coalesce(o, digits, CAST(v AS VARCHAR), 'null') AS offered, stored_at
FROM pairs WHERE differs
UNION ALL
SELECT body, t, 'computed_at_changed', {{stored_computed}}, {{offered_computed}}, stored_at
FROM pairs WHERE kc <> computed AND clocked
ORDER BY body, t, kind
