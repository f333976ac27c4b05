-- body_faults: one row per body that was read value by value and has a fault: its first fault.
-- from: points_by_value.
-- columns: body, fault, faults (how many points have one).
-- law: L7. One fault is enough to refuse the whole body.
SELECT body, arg_min(fault, place) AS fault, count(*) AS faults FROM points_by_value WHERE fault IS NOT NULL GROUP BY body
