-- A pointer finds in the value what its component shows.
SELECT count(*) > 8 AS some, count(*) FILTER (c.v IS DISTINCT FROM TRY_CAST(json_extract(p.o, component) AS DOUBLE)) AS others
FROM components c JOIN points p USING (metric, asset, t) WHERE asset <> 'same' AND component <> '/';
/*
some | others
true | 0
*/
