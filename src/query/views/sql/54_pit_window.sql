-- pit_window: every row of a relation with asset and ts, with the last n points of a metric that were knowable at ts.
--   n is a number of points, or a span such as '90 days': then the points whose interval ended less than that before ts.
-- columns: those of the caller, then t, available_at, v, o, age, nth (1 is the newest), a row for each point.
-- law: L1. The points of a series are numbered by t. None above the last interval that can have been known matters, so
--   the numbers right below are looked up; where too few of those were known yet, further ones are, at last all. A span
--   has at most so many points as intervals fit into it, so that none of it lies further below.
CREATE OR REPLACE MACRO pit_window(decisions, metric, "interval", n, currency := NULL, exchange := NULL, network := NULL,
  component := NULL, max_age := NULL, latency := NULL, skip_nulls := false, unresolved := 'value', vintage := 'last',
  follow_renames := false) AS TABLE
WITH {{known kept}} (
  SELECT p.asset, p.t, p.available_at, p.v, p.o{{seen}}, {{number}} OVER (PARTITION BY p.asset ORDER BY p.t) AS number
  FROM {{series}} AS p WHERE {{counted p {{revised metric}}}}
),{{vintages asset {{revised metric}}}}
_pit_x AS MATERIALIZED (
  SELECT u.* EXCLUDE (_pit_u), {{before u._pit_u}} AS _pit_k, row_number() OVER () AS _pit_i
  FROM (SELECT yours.*, {{utc yours.ts}} AS _pit_u FROM query_table(decisions) AS yours) AS u
),
_pit_q AS MATERIALIZED (
  SELECT x._pit_i, x.asset, x._pit_k, p.number AS top
  FROM (
    SELECT x._pit_i, CAST(x.asset AS VARCHAR) AS asset, x._pit_k,
      CASE WHEN isfinite(x._pit_k) THEN make_timestamptz(epoch_us(x._pit_k) - {{length "interval"}} - {{lag metric}}) ELSE x._pit_k END AS reach
    FROM _pit_x AS x WHERE x._pit_k IS NOT NULL AND x.asset IS NOT NULL
  ) AS x
  ASOF JOIN _pit_p AS p ON x.asset = p.asset AND x.reach >= p.t
),
_pit_size AS MATERIALIZED (
  SELECT CASE WHEN size.points > 0 THEN size.points WHEN size.span > 0 THEN size.span // {{length "interval"}} + 1
    ELSE CAST(error('n is not positive') AS BIGINT) END AS n, size.span
  FROM (
    SELECT whole.points, CASE WHEN whole.points IS NULL THEN {{micros n}} END AS span
    FROM (SELECT TRY_CAST(CAST(n AS VARCHAR) AS BIGINT) AS points) AS whole
  ) AS size
),
_pit_first AS MATERIALIZED (
  SELECT q._pit_i, p.number FROM (SELECT q.*, unnest(range(s.n + 3)) AS back FROM _pit_q AS q, _pit_size AS s) AS q
  JOIN _pit_p AS p ON p.asset = q.asset AND p.number = q.top - q.back AND p.available_at <= q._pit_k{{current p q._pit_k}}
),
_pit_short AS MATERIALIZED (
  SELECT q.* FROM _pit_q AS q LEFT JOIN (SELECT f._pit_i, count(*) AS found FROM _pit_first AS f GROUP BY f._pit_i) AS f USING (_pit_i), _pit_size AS s
  WHERE q.top > s.n + 3 AND coalesce(f.found, 0) < s.n AND s.span IS NULL
),
_pit_second AS MATERIALIZED (
  SELECT q._pit_i, p.number FROM (SELECT q.*, unnest(range(4 * s.n + 100)) AS back FROM _pit_short AS q, _pit_size AS s) AS q
  JOIN _pit_p AS p ON p.asset = q.asset AND p.number = q.top - q.back AND p.available_at <= q._pit_k{{current p q._pit_k}}
),
_pit_shorter AS MATERIALIZED (
  SELECT q.* FROM _pit_short AS q LEFT JOIN (SELECT f._pit_i, count(*) AS found FROM _pit_second AS f GROUP BY f._pit_i) AS f USING (_pit_i), _pit_size AS s
  WHERE q.top > 4 * s.n + 100 AND coalesce(f.found, 0) < s.n
),
_pit_found AS (
  SELECT f._pit_i, f.number FROM _pit_first AS f ANTI JOIN _pit_short AS q ON q._pit_i = f._pit_i
  UNION ALL
  SELECT f._pit_i, f.number FROM _pit_second AS f ANTI JOIN _pit_shorter AS q ON q._pit_i = f._pit_i
  UNION ALL
  SELECT q._pit_i, p.number FROM _pit_shorter AS q JOIN _pit_p AS p ON p.asset = q.asset AND p.number <= q.top AND p.available_at <= q._pit_k{{current p q._pit_k}}
),
_pit_r AS (
  SELECT f._pit_i, f.number, f.nth
  FROM (SELECT f.*, row_number() OVER (PARTITION BY f._pit_i ORDER BY f.number DESC) AS nth FROM _pit_found AS f) AS f, _pit_size AS s
  WHERE f.nth <= s.n
),
_pit_all AS NOT MATERIALIZED (
  SELECT q._pit_i, p.t AS _pit_t, p.available_at AS _pit_a, p.v AS _pit_v, p.o AS _pit_o, r.nth AS _pit_nth,
    epoch_us(q._pit_k) + {{micros latency}} - {{end p.t "interval"}} AS _pit_age,
    first_value(p.o) OVER (PARTITION BY q._pit_i ORDER BY r.nth) AS _pit_newest
  FROM _pit_r AS r JOIN _pit_q AS q ON q._pit_i = r._pit_i JOIN _pit_p AS p ON p.asset = q.asset AND p.number = r.number{{among p q._pit_k}}
  WHERE NOT EXISTS (
    SELECT t, available_at, v, o, age, nth
    FROM query_table(decisions) AS yours, (SELECT NULL AS t, NULL AS available_at, NULL AS v, NULL AS o, NULL AS age, NULL AS nth) AS pit_window
    LIMIT 0
  )
)
SELECT x.* EXCLUDE (_pit_k, _pit_i), a._pit_t AS t, a._pit_a AS available_at, a._pit_v AS v, a._pit_o AS o,
  to_microseconds(a._pit_age) AS age, a._pit_nth AS nth
FROM _pit_x AS x LEFT JOIN (
  SELECT * FROM _pit_all, _pit_size AS s WHERE {{fresh}} AND (s.span IS NULL OR _pit_age < s.span) AND CASE WHEN {{unresolved}} THEN _pit_newest IS DISTINCT FROM '' ELSE true END
) AS a ON a._pit_i = x._pit_i;
COMMENT ON MACRO TABLE pit_window IS 'pit_window(decisions, metric, interval, n): each row of a table or view with asset and ts, with the last n points that were knowable at ts, one row each; nth 1 is the newest. n may be a span such as ''90 days''. Give the decisions an id to group by. Options as pit_join.';
