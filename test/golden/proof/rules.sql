-- A rule, a query that it proves, its twin that looks ahead, and what is said to stand in the way there.

-- a calendar
SELECT ts, count(*) OVER (ORDER BY ts) AS n FROM calendar('2024-01-01', '2024-02-01');
SELECT ts, count(*) OVER () AS n FROM calendar('2024-01-01', '2024-02-01'); -- known after its own

-- a series of instants
SELECT c.ts, count(*) OVER (ORDER BY c.ts) AS n FROM range(TIMESTAMP '2024-01-01', TIMESTAMP '2024-02-01', INTERVAL 1 DAY) AS c (ts);
SELECT c.ts, count(*) OVER () AS n FROM range(TIMESTAMP '2024-01-01', TIMESTAMP '2024-02-01', INTERVAL 1 DAY) AS c (ts); -- known after its own

-- a series of instants that is counted
SELECT ts, (SELECT count(*) FROM generate_series(1, 12)) AS n FROM d;
SELECT ts, (SELECT count(*) FROM generate_series(DATE '2024-01-01', DATE '2024-02-01', INTERVAL 1 DAY)) AS n FROM d; -- aggregate without GROUP BY

-- a list of instants
SELECT ts, count(*) OVER (ORDER BY ts) AS n FROM (SELECT unnest([DATE '2024-01-01', DATE '2024-01-02']) AS ts);
SELECT ts, count(*) OVER () AS n FROM (SELECT unnest([DATE '2024-01-01', DATE '2024-01-02']) AS ts); -- known after its own

-- instants computed from numbers
WITH c AS (SELECT TIMESTAMP '2024-01-01' + n * INTERVAL 1 DAY AS ts FROM range(30) AS r (n)) SELECT ts, count(*) OVER (ORDER BY ts) AS n FROM c;
WITH c AS (SELECT TIMESTAMP '2024-01-01' + n * INTERVAL 1 DAY AS ts FROM range(30) AS r (n)) SELECT ts, count(*) OVER () AS n FROM c; -- known after its own

-- instants computed from two series
WITH c AS (SELECT TIMESTAMP '2024-01-01' + (n * 24 + h) * INTERVAL 1 HOUR AS ts FROM range(30) AS r (n), range(24) AS o (h)) SELECT ts, count(*) OVER (ORDER BY ts) AS n FROM c;
WITH c AS (SELECT TIMESTAMP '2024-01-01' + (n * 24 + h) * INTERVAL 1 HOUR AS ts FROM range(30) AS r (n), range(24) AS o (h)) SELECT ts, count(*) OVER () AS n FROM c; -- known after its own

-- instants in VALUES
WITH c (ts, a) AS (VALUES (DATE '2024-01-01', 1), (DATE '2024-01-02', 2)) SELECT ts, sum(a) OVER (ORDER BY ts) AS n FROM c;
WITH c (ts, a) AS (VALUES (DATE '2024-01-01', 1), (DATE '2024-01-02', 2)) SELECT ts, sum(a) OVER () AS n FROM c; -- known after its own

-- texts in VALUES that become instants
WITH c (x, a) AS (VALUES ('2024-01-01', 1), ('2024-01-02', 2)) SELECT CAST(x AS DATE) AS ts, a FROM c;
WITH c (x, a) AS (VALUES ('2024-01-01', 1), ('2024-01-02', 2)) SELECT CAST(x AS DATE) AS ts, max(a) OVER () AS n FROM c; -- known after its own

-- the order of numbers
WITH c AS (SELECT TIMESTAMP '2024-01-01' + n * INTERVAL 1 DAY AS ts, n FROM range(30) AS r (n)) SELECT ts, sum(n) OVER (ORDER BY ts) AS v FROM c;
WITH c AS (SELECT TIMESTAMP '2024-01-01' - n * INTERVAL 1 DAY AS ts, n FROM range(30) AS r (n)) SELECT ts, sum(n) OVER (ORDER BY n) AS v FROM c; -- come later than it

-- VALUES of both sides of a union
WITH c AS (SELECT x FROM (VALUES ('2024-01-01'), ('2024-01-02')) AS a (x) UNION ALL SELECT x FROM (VALUES ('2024-01-03'), ('2024-01-04')) AS b (x)) SELECT CAST(x AS DATE) AS ts FROM c;
WITH c AS (SELECT x FROM (VALUES ('2024-01-01'), ('2024-01-02')) AS a (x) UNION ALL SELECT x FROM (VALUES ('2024-01-03'), ('2024-01-04')) AS b (x)) SELECT CAST(x AS DATE) AS ts, count(*) OVER () AS n FROM c; -- known after its own

-- numbers and assets of the text
SELECT d.ts, r.n, count(*) OVER (PARTITION BY d.ts) AS v FROM d, range(3) AS r (n), (VALUES ('a'), ('b')) AS a (asset);
SELECT d.ts, r.n, count(*) OVER (PARTITION BY r.n) AS v FROM d, range(3) AS r (n), (VALUES ('a'), ('b')) AS a (asset); -- known after its own

-- a dated view
SELECT available_at AS ts, v FROM points;
SELECT t AS ts, v FROM points; -- known at available_at

-- a version
SELECT valid_from AS ts, status FROM history.products;
SELECT valid_from AS ts, valid_to FROM history.products; -- next version

-- what ended a version
SELECT valid_from AS ts, op FROM history.products;
SELECT valid_from AS ts, closed_by FROM history.products; -- next version

-- a state
SELECT ts, metric FROM d, endpoints;
SELECT ts, status FROM d, products; -- state as it is now

-- events
SELECT polled_at AS ts, op FROM registry_events;
SELECT polled_at - INTERVAL 1 HOUR AS ts, op FROM registry_events; -- polled_at

-- whole coarse points
SELECT available_at AS ts, v FROM resample('m', '24h', '1w') WHERE complete;
SELECT available_at AS ts, v FROM resample('m', '24h', '1w'); -- lacks parts

-- coarse points that are joined
SELECT d.ts, r.v FROM d JOIN resample('m', '24h', '1w') r ON r.available_at <= d.ts WHERE r.complete;
SELECT d.ts, r.v FROM d JOIN resample('m', '24h', '1w') r ON r.available_at <= d.ts WHERE NOT r.complete; -- lacks parts

-- a later instant
SELECT available_at + INTERVAL 1 DAY AS ts, v FROM points;
SELECT available_at - INTERVAL 1 DAY AS ts, v FROM points; -- available_at

-- a distance as text
SELECT available_at + INTERVAL '2 hours' AS ts, v FROM points;
SELECT available_at + INTERVAL '-2 hours' AS ts, v FROM points; -- available_at

-- a negative distance
SELECT available_at - to_days(-1) AS ts, v FROM points;
SELECT available_at + to_days(-1) AS ts, v FROM points; -- available_at

-- the next midnight
SELECT date_trunc('day', available_at) + INTERVAL 1 DAY AS ts FROM points;
SELECT date_trunc('day', available_at) AS ts FROM points; -- available_at

-- the next hour, not of a day
SELECT date_trunc('hour', available_at) + to_hours(1) AS ts FROM points;
SELECT date_trunc('day', available_at) + to_hours(1) AS ts FROM points; -- available_at

-- a date
SELECT CAST(available_at AS DATE) + 1 AS ts FROM points;
SELECT CAST(available_at AS DATE) AS ts FROM points; -- available_at

-- a zone-less instant
SELECT timezone('UTC', available_at) AS ts FROM points;
SELECT timezone('Asia/Tokyo', available_at) AS ts FROM points; -- available_at

-- the later of two
SELECT greatest(available_at, t) AS ts FROM points;
SELECT least(available_at, t) AS ts FROM points; -- available_at

-- the later of two that may be NULL
SELECT greatest(available_at, observed_at) AS ts FROM points;
SELECT greatest(t, observed_at) AS ts FROM points WHERE available_at <= observed_at OR v > 1; -- available_at

-- an instant that is never NULL
SELECT coalesce(available_at, t) AS ts FROM points;
SELECT coalesce(observed_at, available_at) AS ts FROM points; -- available_at

-- CASE
SELECT ts, CASE WHEN v > 1 THEN v END AS v FROM j;
SELECT available_at AS ts, CASE WHEN v > 1 THEN (SELECT max(v) FROM points) END AS v FROM points; -- aggregate without

-- a filter
SELECT ts, v FROM j WHERE v > 2;
SELECT ts, v FROM j WHERE v > (SELECT avg(v) FROM points); -- aggregate without

-- a condition between
SELECT d.ts, p.v FROM d JOIN points p ON p.available_at BETWEEN d.ts - INTERVAL 3 DAY AND d.ts;
SELECT d.ts, p.v FROM d JOIN points p ON p.t BETWEEN d.ts - INTERVAL 3 DAY AND d.ts; -- available_at

-- a condition that is not sure
SELECT d.ts, p.v FROM d JOIN points p ON p.available_at <= d.ts AND p.v > 1;
SELECT d.ts, p.v FROM d JOIN points p ON p.available_at <= d.ts OR p.v > 1; -- available_at

-- an inner join
SELECT d.ts, p.v FROM d JOIN points p ON p.asset = d.asset AND p.available_at <= d.ts;
SELECT d.ts, p.v FROM d JOIN points p ON p.asset = d.asset AND p.t <= d.ts; -- available_at

-- an outer join
SELECT d.ts, p.v FROM d LEFT JOIN points p ON p.asset = d.asset AND p.available_at < d.ts;
SELECT d.ts, 1 AS one FROM d LEFT JOIN points p ON p.asset = d.asset AND p.t = d.ts; -- match may come later

-- a right join
SELECT d.ts, p.v FROM points p RIGHT JOIN d ON p.available_at <= d.ts;
SELECT p.available_at AS ts, d.asset FROM d LEFT JOIN points p ON p.available_at > d.ts; -- match may come later

-- rows of both sides
SELECT d.ts, a.x, b.x AS y FROM d, ((VALUES ('a'), ('b')) AS a (x) FULL JOIN (VALUES ('b'), ('c')) AS b (x) ON a.x = b.x);
SELECT coalesce(d.ts, p.available_at) AS ts FROM d FULL JOIN points p ON p.available_at = d.ts; -- both are always known

-- absence in a filter
SELECT d.ts FROM d ANTI JOIN points p ON p.available_at <= d.ts;
SELECT d.ts FROM d ANTI JOIN points p ON p.asset = d.asset; -- match may come later

-- EXISTS
SELECT ts FROM d WHERE NOT EXISTS (FROM points p WHERE p.available_at <= d.ts);
SELECT ts FROM d WHERE EXISTS (FROM points p WHERE p.t <= d.ts); -- match may come later

-- IN
SELECT ts FROM d WHERE asset IN (SELECT asset FROM points p WHERE p.available_at <= d.ts);
SELECT ts FROM d WHERE asset IN (SELECT asset FROM points); -- match may come later

-- NOT IN with NULLs
SELECT ts FROM d WHERE ts NOT IN (SELECT available_at FROM points);
SELECT ts FROM d WHERE (ts, asset) NOT IN (SELECT available_at, basis FROM points); -- a NULL on one side

-- ASOF
SELECT d.ts, p.v FROM d ASOF JOIN points p ON p.asset = d.asset AND d.ts >= p.available_at;
SELECT d.ts, p.v FROM d ASOF JOIN points p ON p.asset = d.asset AND d.ts >= p.t; -- match may come later

-- ASOF the other way
SELECT d.ts, p.v FROM d ASOF LEFT JOIN points p ON p.asset = d.asset AND d.ts > p.available_at;
SELECT d.ts, p.v FROM d ASOF LEFT JOIN points p ON p.asset = d.asset AND d.ts <= p.available_at; -- match may come later

-- a version that stands
SELECT ts, status FROM d JOIN history.products h ON h.valid_from <= d.ts AND d.ts < h.valid_to;
SELECT ts, status FROM d JOIN history.products h ON d.ts < h.valid_to; -- valid_from

-- whether a version stands
SELECT ts, ts < valid_to AS stands FROM d JOIN history.products h ON h.valid_from <= d.ts;
SELECT ts, valid_to = 'infinity' AS stands FROM d JOIN history.products h ON h.valid_from <= d.ts AND ts < '2025-01-01'; -- known at infinity

-- a correlated subquery
SELECT ts, (SELECT max(v) FROM points p WHERE p.available_at <= d.ts) AS v FROM d;
SELECT ts, (SELECT max(v) FROM points p WHERE p.asset = d.asset) AS v FROM d; -- GROUP BY|group may become known later

-- a lateral join
SELECT ts, l.v FROM d, LATERAL (SELECT v FROM points p WHERE p.available_at <= d.ts ORDER BY t DESC LIMIT 1) l;
SELECT ts, l.v FROM d, LATERAL (SELECT v FROM points p WHERE p.asset = d.asset ORDER BY t DESC LIMIT 1) l; -- looks at rows|may come later

-- what was known by a date
SELECT ts, m FROM d, (SELECT max(v) AS m FROM points WHERE available_at <= '2024-01-01') WHERE ts >= '2024-01-01';
SELECT ts, m FROM d, (SELECT max(v) AS m FROM points WHERE available_at <= '2024-06-01') WHERE ts >= '2024-01-01'; -- group may become known later

-- a date that holds nothing
SELECT ts FROM d WHERE ts >= '2024-01-01';
SELECT TIMESTAMPTZ '2020-01-01' AS ts, n FROM (SELECT count(*) AS n FROM points WHERE available_at >= '2030-01-01' AND available_at <= '2010-01-01'), d WHERE ts > '2000-01-01'; -- group may become known later
