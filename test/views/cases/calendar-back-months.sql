-- A calendar whose step goes back by months is refused, whatever its days.
FROM calendar('2024-01-01', '2024-03-03', '-1 month 60 days');
/*
error: does not go forward
*/
