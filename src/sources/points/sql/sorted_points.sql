-- sorted_points: one row per new point as a file stores it, in the order of series and t.
-- from: dated_points.
-- columns: part, body, t (seconds), available, seen, told_at, stands_in (microseconds), v, o, extra, dated_by (see dated_points).
-- law: L4. A file is sorted by series and t.
SELECT part, body, t, available, seen, v, o, dated_by, extra, told_at, stands_in
FROM ({{dated}})
{{order}}
