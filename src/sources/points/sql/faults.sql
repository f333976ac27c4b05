-- The first fault of each body that is read value by value.
-- columns: body, fault, faults (how many points have one).
-- law: L7. One fault is enough to refuse the whole body.
SELECT body, arg_min(fault, place) AS fault, count(*) AS faults FROM by_value WHERE fault IS NOT NULL GROUP BY body
