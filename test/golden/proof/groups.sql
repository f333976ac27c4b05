-- The same of rules that put rows together: groups, windows, orders, sets; and of functions.

-- GROUP BY
SELECT ts, max(v) AS v FROM j GROUP BY ts;
SELECT asset, max(ts) AS ts, max(v) AS v FROM points, LATERAL (SELECT available_at AS ts) GROUP BY asset; -- no key bounds

-- a key that is rounded
SELECT date_trunc('day', available_at) + INTERVAL 1 DAY AS ts, sum(v) AS v FROM points GROUP BY ALL;
SELECT date_trunc('day', available_at) AS ts, sum(v) AS v FROM points GROUP BY ALL; -- no key bounds

-- an aggregate beside its group
SELECT ts, sum(v) FILTER (asset = 'BTC') AS v FROM j GROUP BY ts;
SELECT ts, sum(l) AS v FROM (SELECT ts, lead(v) OVER (PARTITION BY asset ORDER BY ts) AS l FROM j) GROUP BY ts; -- known after its own

-- several sets of groups
SELECT ts, asset, max(v) AS v FROM j GROUP BY ts, asset;
SELECT ts, asset, max(v) AS v FROM j GROUP BY ROLLUP (ts, asset); -- several at once

-- DISTINCT
SELECT DISTINCT available_at AS ts FROM points;
SELECT CAST('2024-01-01' AS TIMESTAMPTZ) AS ts, a AS asset FROM (SELECT DISTINCT asset AS a FROM points), d; -- no key bounds

-- DISTINCT ON
SELECT DISTINCT ON (ts) ts, asset FROM j ORDER BY ts, asset;
SELECT DISTINCT ON (asset) available_at AS ts, asset FROM points ORDER BY asset, available_at DESC; -- no key bounds

-- LIMIT
SELECT available_at AS ts FROM points ORDER BY available_at LIMIT 9;
SELECT available_at AS ts FROM points ORDER BY available_at DESC LIMIT 9; -- take the place

-- LIMIT by another order
SELECT available_at AS ts FROM points ORDER BY available_at, v LIMIT 9 OFFSET 2;
SELECT available_at AS ts FROM points ORDER BY v, available_at LIMIT 9; -- take the place

-- LIMIT of a share
SELECT ts FROM d ORDER BY ts LIMIT 10;
SELECT available_at AS ts FROM points ORDER BY available_at LIMIT 10%; -- take the place

-- LIMIT and rows without an instant
SELECT observed_at AS ts FROM points WHERE available_at <= observed_at ORDER BY observed_at LIMIT 9;
SELECT least(observed_at, TIMESTAMPTZ '2030-01-01') AS ts FROM points ORDER BY available_at LIMIT 9; -- available_at

-- a trailing window
SELECT ts, avg(v) OVER (PARTITION BY asset ORDER BY ts ROWS BETWEEN 6 PRECEDING AND CURRENT ROW) AS v FROM j;
SELECT ts, avg(v) OVER (PARTITION BY asset ORDER BY ts ROWS BETWEEN 3 PRECEDING AND 3 FOLLOWING) AS v FROM j; -- known after its own

-- a default frame
SELECT ts, sum(v) OVER (ORDER BY ts) AS v FROM j;
SELECT available_at AS ts, sum(v) OVER () AS v FROM points; -- known after its own

-- an order that bounds
SELECT available_at AS ts, sum(v) OVER (ORDER BY available_at) AS v FROM points;
SELECT available_at AS ts, sum(v) OVER (ORDER BY t) AS v FROM points; -- may come later than it

-- an order with NULLs
SELECT ts, sum(v) OVER (ORDER BY available_at, v) AS v FROM (SELECT *, available_at AS ts FROM points);
SELECT available_at AS ts, sum(v) OVER (ORDER BY nullif(available_at, t) NULLS FIRST) AS v FROM points; -- known after its own|may come later

-- a reversed order
SELECT ts, sum(v) OVER (PARTITION BY ts ORDER BY v DESC) AS v FROM j;
SELECT available_at AS ts, sum(v) OVER (ORDER BY available_at DESC) AS v FROM points; -- known after its own

-- lag
SELECT ts, lag(v, 2, 0) OVER (PARTITION BY asset ORDER BY ts) AS v FROM j;
SELECT ts, lead(v, 2, 0) OVER (PARTITION BY asset ORDER BY ts) AS v FROM j; -- known after its own

-- a lag that is none
SELECT ts, lag(v, 0) OVER (PARTITION BY asset ORDER BY ts) AS v FROM j;
SELECT ts, lag(v, -1) OVER (PARTITION BY asset ORDER BY ts) AS v FROM j; -- known after its own

-- a lag that is computed
SELECT ts, lag(v, 1 + 0) OVER (PARTITION BY ts ORDER BY asset) AS v FROM j;
SELECT ts, lag(v, CAST(v AS INTEGER)) OVER (PARTITION BY asset ORDER BY ts) AS v FROM j; -- known after its own

-- a rank among those of an instant
SELECT ts, rank() OVER (PARTITION BY ts ORDER BY v DESC) AS r FROM j;
SELECT ts, ntile(5) OVER (PARTITION BY asset ORDER BY ts) AS r FROM j; -- known after its own

-- a range
SELECT ts, sum(v) OVER (ORDER BY ts RANGE BETWEEN INTERVAL 3 DAY PRECEDING AND INTERVAL 1 DAY PRECEDING) AS v FROM j;
SELECT ts, sum(v) OVER (ORDER BY ts RANGE BETWEEN INTERVAL 3 DAY PRECEDING AND INTERVAL 1 DAY FOLLOWING) AS v FROM j; -- known after its own

-- a frame of fewer rows
SELECT ts, sum(v) OVER (ORDER BY ts, asset ROWS BETWEEN 3 PRECEDING AND 1 PRECEDING) AS v FROM j;
SELECT ts, sum(v) OVER (ORDER BY ts, asset ROWS BETWEEN 3 PRECEDING AND -2 PRECEDING) AS v FROM j; -- known after its own

-- QUALIFY
SELECT available_at AS ts, asset FROM points QUALIFY row_number() OVER (PARTITION BY asset ORDER BY available_at) = 1;
SELECT available_at AS ts, asset FROM points QUALIFY row_number() OVER (PARTITION BY asset ORDER BY available_at DESC) = 1; -- known after its own

-- UNION ALL
SELECT ts, 1 AS x FROM d UNION ALL SELECT available_at, v FROM points;
SELECT ts, 1 AS x FROM d UNION ALL SELECT t, v FROM points; -- known at .*nothing holds to be at or before ts

-- UNION by name
SELECT 1 AS x, ts FROM d UNION ALL BY NAME SELECT available_at AS ts, v AS x FROM points;
SELECT t AS x, ts FROM d, points UNION ALL BY NAME SELECT available_at AS ts, t AS x FROM points; -- available_at

-- EXCEPT
SELECT ts, asset FROM d EXCEPT SELECT available_at, asset FROM points;
SELECT asset, ts FROM d EXCEPT ALL SELECT asset, t FROM points; -- known at .*nothing holds to be at or before ts

-- INTERSECT
SELECT ts FROM d INTERSECT SELECT available_at FROM points;
SELECT ts FROM d INTERSECT SELECT t FROM points; -- no key bounds ts or available_at

-- unnest
SELECT ts, unnest([v, 1]) AS v FROM j;
SELECT ts, unnest((SELECT list(v ORDER BY t) FROM points)) AS v FROM d; -- aggregate without

-- a CTE that is read twice
SELECT a.ts, b.v FROM j AS a JOIN j AS b ON b.ts <= a.ts;
SELECT a.ts, b.v FROM j AS a JOIN j AS b ON b.ts > a.ts AND b.v > a.v JOIN points p ON p.available_at <= b.ts; -- another ts

-- a lambda
SELECT ts, list_transform([v], lambda x: x + 1) AS v FROM j;
SELECT ts, list_transform([v], lambda x: x + random()) AS v FROM j; -- random\(\)

-- a function
SELECT ts, round(v, 2) AS v FROM j;
SELECT ts, v, now() AS n FROM j; -- now\(\)

-- a setting
SELECT ts, strftime(ts, '%H') AS v FROM j;
SELECT ts, current_setting('TimeZone') AS v FROM j; -- current_setting\(\)

-- a variable
SELECT ts, 1 AS v FROM j;
SELECT ts, getvariable('as_of') AS v FROM j; -- getvariable\(\)

-- a sample
SELECT ts FROM j;
SELECT ts FROM j USING SAMPLE 10%; -- SAMPLE

-- recursion
WITH c AS (SELECT ts FROM calendar('2024-01-01', '2024-02-01')) SELECT ts FROM c;
WITH RECURSIVE c AS (SELECT TIMESTAMPTZ '2024-01-01' AS ts UNION ALL SELECT ts + INTERVAL 1 DAY FROM c WHERE ts < '2024-02-01') SELECT ts FROM c; -- RECURSIVE

-- the version of the lake
SELECT ts, 'v' AS v FROM d;
SELECT ts, lake_version() AS v FROM d; -- lake_info

-- sides that are known at different columns
SELECT ts, asset FROM d UNION ALL SELECT available_at, asset FROM points;
SELECT available_at AS ts, t AS x FROM points UNION ALL SELECT t, available_at FROM points; -- known at

-- a column of a side
SELECT ts, EXISTS (FROM points p WHERE p.available_at <= d.ts) AS e FROM d UNION ALL SELECT ts, true FROM d;
SELECT ts - INTERVAL 1 DAY AS ts, EXISTS (FROM points p WHERE p.available_at <= d.ts) AS e FROM d UNION ALL SELECT ts, true FROM d; -- known at ts, which nothing holds to be at or before ts -

-- elements of a list
SELECT ts, unnest([EXISTS (FROM points p WHERE p.available_at <= d.ts)]) AS e FROM d;
SELECT ts - INTERVAL 1 DAY AS ts, unnest([EXISTS (FROM points p WHERE p.available_at <= d.ts)]) AS e FROM d; -- known at ts

-- a column of an outer join
SELECT d.ts, r.e FROM d LEFT JOIN (SELECT ts, EXISTS (FROM points p WHERE p.available_at <= d.ts) AS e FROM d) AS r ON r.ts = d.ts;
SELECT d.ts, r.e FROM d LEFT JOIN (SELECT ts - INTERVAL 1 DAY AS ts, EXISTS (FROM points p WHERE p.available_at <= d.ts) AS e FROM d) AS r ON r.ts = d.ts; -- match may come later

-- an order by what may be NULL
SELECT available_at AS ts, sum(v) OVER (ORDER BY TRY_CAST(available_at AS TIMESTAMP)) AS v FROM points WHERE available_at = TRY_CAST(available_at AS TIMESTAMP);
SELECT TRY_CAST(available_at AS TIMESTAMP) AS ts, sum(v) OVER (ORDER BY TRY_CAST(available_at AS TIMESTAMP) NULLS FIRST) AS v FROM points; -- after its own

-- the later of what may be NULL
SELECT greatest(TRY_CAST(available_at AS TIMESTAMP), available_at) AS ts FROM points;
SELECT greatest(TRY_CAST(available_at AS TIMESTAMP), TIMESTAMP '2024-01-01') AS ts FROM points; -- known at available_at
