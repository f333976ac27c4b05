-- A component may lie 63 levels deep.
SELECT component = repeat('/0', 63) AS place, v FROM components WHERE asset = 'deep';
/*
place | v
true | 7
*/
