-- pit_window: every row of a relation with asset and ts, with the last n points of a metric that were knowable at ts.
-- n is a number of points, or a span such as '90 days'. A span selects the points whose interval ended less than that
--   before ts.
-- columns: those of the caller, then t, available_at, v, o, age, nth (1 is the newest); one row for each point.
-- law: L1. The points of a series are numbered by t. The newest interval that can be known gives the highest number
--   that matters, so the numbers just below it are looked up.
--   If too few of these points were known, more are looked up, and in the end all of them. A span has at most as many
--   points as intervals fit into it, so no more are needed.
CREATE OR REPLACE MACRO pit_window(decisions, metric, "interval", n, currency := NULL, exchange := NULL, network := NULL,
  component := NULL, max_age := NULL, latency := NULL, skip_nulls := false, unresolved := 'value', vintage := 'last',
  follow_renames := false) AS TABLE (
WITH {{part numbered_points}},
_pit_window_tops AS MATERIALIZED (
  SELECT x._pit_id, x.asset, x._pit_known_by, p.number AS top
  FROM (
    SELECT x._pit_id, CAST(x.asset AS VARCHAR) AS asset, x._pit_known_by,
      CASE WHEN isfinite(x._pit_known_by)
        THEN make_timestamptz(epoch_us(x._pit_known_by) - {{length "interval"}} - {{lag metric}})
        ELSE x._pit_known_by END AS reach
    FROM _pit_decisions AS x WHERE x._pit_known_by IS NOT NULL AND x.asset IS NOT NULL
  ) AS x
  ASOF JOIN _pit_all_points AS p ON x.asset = p.asset AND x.reach >= p.t
),
{{part window_points}}
SELECT x.* EXCLUDE (_pit_known_by, _pit_id), a._pit_point_t AS t, a._pit_point_available_at AS available_at,
  a._pit_point_v AS v, a._pit_point_o AS o,
  to_microseconds(a._pit_age) AS age, a._pit_nth AS nth
FROM _pit_decisions AS x LEFT JOIN (
  SELECT * FROM _pit_all, _pit_size AS s
  WHERE {{fresh}}
    AND (s.span IS NULL OR _pit_age < s.span)
    AND CASE WHEN {{unresolved}} THEN _pit_newest IS DISTINCT FROM '' ELSE true END
) AS a ON a._pit_id = x._pit_id
), (decisions, metric, "interval", n, back, currency := NULL, exchange := NULL, network := NULL,
  component := NULL, max_age := NULL, latency := NULL, skip_nulls := false, unresolved := 'value', vintage := 'last',
  follow_renames := false) AS TABLE (
WITH {{part numbered_points}},
_pit_newest AS MATERIALIZED (
  SELECT x._pit_id AS _pit_answer_id, x.*
  FROM (
    {{newest_known (
      SELECT x._pit_id, CAST(x.asset AS VARCHAR) AS asset, x._pit_known_by FROM _pit_decisions AS x
      WHERE x._pit_known_by IS NOT NULL AND x.asset IS NOT NULL)}}
  ) AS x
),
{{sought macro asset}},
_pit_window_tops AS MATERIALIZED (
  SELECT s._pit_answer_id AS _pit_id, s.asset, s._pit_known_by, s._pit_shift,
    p.number - CASE WHEN {{end p.t "interval"}} > s._pit_until THEN 1 ELSE 0 END AS top
  FROM (SELECT s.*, make_timestamptz(s._pit_until - {{length "interval"}}) AS reach FROM _pit_span_ends AS s) AS s
  ASOF JOIN _pit_all_points AS p ON s.asset = p.asset AND s.reach >= p.t
),
{{part window_points}}
SELECT x.* EXCLUDE (_pit_known_by, _pit_id), a._pit_point_t AS t, a._pit_point_available_at AS available_at,
  a._pit_point_v AS v, a._pit_point_o AS o,
  to_microseconds(a._pit_age) AS age, a._pit_nth AS nth
FROM _pit_decisions AS x LEFT JOIN (
  SELECT * FROM (SELECT a.*, q._pit_shift
    FROM _pit_all AS a JOIN _pit_window_tops AS q ON q._pit_id = a._pit_id) AS a, _pit_size AS s
  WHERE {{fresh _pit_shift}} AND (s.span IS NULL OR _pit_age - _pit_shift < s.span)
    AND CASE WHEN {{unresolved}} THEN _pit_newest IS DISTINCT FROM '' ELSE true END
) AS a ON a._pit_id = x._pit_id);
COMMENT ON MACRO TABLE pit_window IS 'pit_window(decisions, metric, interval, n): each row of a table or view with asset and ts, with the last n points that were knowable at ts, one row each; nth 1 is the newest. n may be a span such as ''90 days''. Give the decisions an id to group by. Options as pit_join.';
