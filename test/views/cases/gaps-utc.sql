-- Series count points and gaps by the calendar in UTC, also over changes of summer time, in the zone UTC.
SET TimeZone = 'UTC';
SELECT asset, "interval", points, gaps FROM series
WHERE asset IN ('spring', 'autumn', 'hours', 'weeks', 'months') ORDER BY asset;
/*
asset | interval | points | gaps
autumn | 24h | 3 | 0
hours | 1h | 2 | 2
months | 1month | 3 | 2
spring | 24h | 3 | 0
weeks | 1w | 3 | 1
*/
