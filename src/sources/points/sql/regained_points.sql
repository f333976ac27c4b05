-- regained_points: one row per new point of a month that lost points with a file, dated as if it were the lost point.
-- from: dated_points of new_points, lost_months, first_sightings, recorded_values.
-- columns: body, rank, month, was and kept (when this lake first saw it by what it knew of the window, by a record), late,
--   again, and those of a points file; the rank is their metric.
-- law: L1, L2. What the lake knew of the windows then says when each point was seen and whether it was late.
CREATE TEMP TABLE regained_points AS
SELECT body, rank, month, was, kept, late, again, CAST(rank AS VARCHAR) AS metric, '' AS "interval", {{none}},
  make_timestamptz(t * 1000000) AS t, make_timestamptz(available) AS available_at, make_timestamptz(seen) AS observed_at, v, o,
  dated_by AS basis, extra, make_timestamptz(told_at) AS computed_at, make_timestamptz(stands_in) AS available_rule_at
FROM ({{dated}})
