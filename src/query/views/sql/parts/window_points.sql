-- _pit_all: the points of each window with their nth: the last n that were knowable, from the number
--   _pit_window_tops.top downwards.
_pit_size AS MATERIALIZED (
  SELECT CASE WHEN size.points > 0 THEN size.points WHEN size.span > 0 THEN size.span // {{length "interval"}} + 1
    ELSE CAST(error('n is not positive') AS BIGINT) END AS n, size.span
  FROM (
    SELECT whole.points, CASE WHEN whole.points IS NULL THEN {{micros n}} END AS span
    FROM (SELECT TRY_CAST(CAST(n AS VARCHAR) AS BIGINT) AS points) AS whole
  ) AS size
),
_pit_first AS MATERIALIZED (
  SELECT q._pit_id, p.number
  FROM (SELECT q.*, unnest(range(s.n + 3)) AS below FROM _pit_window_tops AS q, _pit_size AS s) AS q
  JOIN _pit_all_points AS p ON p.asset = q.asset AND p.number = q.top - q.below
    AND p.available_at <= q._pit_known_by{{current p q._pit_known_by}}
),
_pit_short AS MATERIALIZED (
  SELECT q.* FROM _pit_window_tops AS q
  LEFT JOIN (SELECT f._pit_id, count(*) AS found FROM _pit_first AS f GROUP BY f._pit_id) AS f USING (_pit_id), _pit_size AS s
  WHERE q.top > s.n + 3 AND coalesce(f.found, 0) < s.n AND s.span IS NULL
),
_pit_second AS MATERIALIZED (
  SELECT q._pit_id, p.number
  FROM (SELECT q.*, unnest(range(4 * s.n + 100)) AS below FROM _pit_short AS q, _pit_size AS s) AS q
  JOIN _pit_all_points AS p ON p.asset = q.asset AND p.number = q.top - q.below
    AND p.available_at <= q._pit_known_by{{current p q._pit_known_by}}
),
_pit_shorter AS MATERIALIZED (
  SELECT q.* FROM _pit_short AS q
  LEFT JOIN (SELECT f._pit_id, count(*) AS found FROM _pit_second AS f GROUP BY f._pit_id) AS f USING (_pit_id), _pit_size AS s
  WHERE q.top > 4 * s.n + 100 AND coalesce(f.found, 0) < s.n
),
_pit_found AS (
  SELECT f._pit_id, f.number FROM _pit_first AS f ANTI JOIN _pit_short AS q ON q._pit_id = f._pit_id
  UNION ALL
  SELECT f._pit_id, f.number FROM _pit_second AS f ANTI JOIN _pit_shorter AS q ON q._pit_id = f._pit_id
  UNION ALL
  SELECT q._pit_id, p.number
  FROM _pit_shorter AS q
  JOIN _pit_all_points AS p ON p.asset = q.asset AND p.number <= q.top
    AND p.available_at <= q._pit_known_by{{current p q._pit_known_by}}
),
_pit_found_points AS (
  SELECT f._pit_id, f.number, f.nth
  FROM (SELECT f.*,
    row_number() OVER (PARTITION BY f._pit_id ORDER BY f.number DESC) AS nth
    FROM _pit_found AS f) AS f, _pit_size AS s
  WHERE f.nth <= s.n
),
_pit_all AS NOT MATERIALIZED (
  SELECT q._pit_id, p.t AS _pit_point_t,
    p.available_at AS _pit_point_available_at, p.v AS _pit_point_v, p.o AS _pit_point_o, r.nth AS _pit_nth,
    epoch_us(q._pit_known_by) + {{micros latency}} - {{end p.t "interval"}} AS _pit_age,
    first_value(p.o) OVER (PARTITION BY q._pit_id ORDER BY r.nth) AS _pit_newest
  FROM _pit_found_points AS r
  JOIN _pit_window_tops AS q ON q._pit_id = r._pit_id
  JOIN _pit_all_points AS p ON p.asset = q.asset AND p.number = r.number{{among p q._pit_known_by}}
  WHERE NOT EXISTS (
    SELECT t, available_at, v, o, age, nth
    FROM query_table(decisions) AS yours,
      (SELECT NULL AS t, NULL AS available_at, NULL AS v, NULL AS o, NULL AS age, NULL AS nth) AS pit_window
    LIMIT 0
  )
)
