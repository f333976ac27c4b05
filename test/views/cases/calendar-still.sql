-- A calendar whose step is nothing is refused.
FROM calendar('2024-01-01', '2024-03-03', '0 days');
/*
error: does not go forward
*/
