-- The fresh points as files are made of them, in their order.
-- columns: part, body, t (seconds), available, seen, told_at, stands_in (microseconds), v, o, extra, dated_by (see dated).
-- law: L4. A file is sorted by series and t.
SELECT part, body, t, available, seen, v, o, dated_by, extra, told_at, stands_in
FROM ({{dated}})
{{order}}
