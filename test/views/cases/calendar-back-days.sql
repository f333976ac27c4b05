-- A calendar whose step goes back by days is refused, whatever its months.
FROM calendar('2024-01-01', '2024-03-03', '1 month -1 day');
/*
error: does not go forward
*/
