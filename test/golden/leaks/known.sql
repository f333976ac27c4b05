-- Honest queries that leave rows out, or put them together, by what was known.

-- a LEFT JOIN that holds back what is not known
{q} SELECT d.ts, p.v FROM d LEFT JOIN {daily} p ON p.t = date_trunc('day', d.ts) - INTERVAL 1 DAY AND p.available_at <= d.ts;

-- days after which nothing new is known
{q} SELECT ts, 1 AS one FROM d WHERE NOT EXISTS (FROM {daily} p WHERE p.available_at <= d.ts AND p.available_at > d.ts - INTERVAL 6 HOUR);

-- the first decision after each arrival
{q} SELECT min(ts) AS ts, known FROM (SELECT ts, (SELECT max(available_at) FROM {daily} p WHERE p.available_at <= d.ts) AS known FROM d) GROUP BY known;

-- EXCEPT what was known to be without a value
{q} SELECT ts, 1 AS one FROM d EXCEPT SELECT d.ts, 1 FROM d JOIN {daily} p ON p.available_at <= d.ts AND p.v IS NULL AND p.t > d.ts - INTERVAL 3 DAY;
