-- A component that is no JSON pointer is refused by name.
SELECT t FROM resample('m/o#a', '24h', '1w');
/*
error: JSON pointer
*/
