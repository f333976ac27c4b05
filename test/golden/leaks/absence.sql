-- What is not there yet lets a row stand, apart or as it is: once it comes the row is gone, or one with others.

-- a condition on what is not known yet, behind a LEFT JOIN
{q} SELECT d.ts, p.v FROM d LEFT JOIN {daily} p ON p.t = date_trunc('day', d.ts) - INTERVAL 1 DAY
      WHERE p.available_at IS NULL OR p.available_at <= d.ts;

-- NOT EXISTS of the next point
{d} SELECT ts, 1 AS one FROM d WHERE NOT EXISTS (FROM {most} p WHERE p.t = d.ts);

-- NOT IN the days of points
{d} SELECT ts, 1 AS one FROM d WHERE ts NOT IN (SELECT t FROM {most});

-- LEFT JOIN without a match
{d} SELECT d.ts, 1 AS one FROM d LEFT JOIN {most} p ON p.t = d.ts WHERE p.t IS NULL;

-- COALESCE with when it will be known
{q} SELECT d.ts, coalesce(p.available_at, d.ts) AS since FROM d LEFT JOIN {daily} p ON p.t = date_trunc('day', d.ts);

-- GREATEST of the row and what comes
{q} SELECT greatest(d.ts, p.available_at) AS ts, count(*) AS n FROM d LEFT JOIN {daily} p ON p.t = date_trunc('day', d.ts) GROUP BY 1;

-- DISTINCT instants, moved to what comes
{q} SELECT DISTINCT coalesce(p.available_at, d.ts) AS ts, 1 AS one FROM d
      LEFT JOIN {daily} p ON p.available_at > d.ts AND p.available_at <= d.ts + INTERVAL 1 DAY;

-- LIMIT of days without a point
{d} SELECT ts, 1 AS one FROM d ANTI JOIN {most} p ON p.t = d.ts ORDER BY ts LIMIT 3;

-- FULL JOIN on the day
{d} SELECT coalesce(d.ts, p.t) AS ts, p.t IS NULL AS alone FROM d FULL JOIN {daily} p ON p.t = d.ts;

-- GROUP BY the next arrival
{q} SELECT min(ts) AS ts, count(*) AS n FROM (SELECT ts, (SELECT min(available_at) FROM {daily} p WHERE p.available_at > d.ts) AS next FROM d) GROUP BY next;

-- a group without what a FILTER counts
{q} SELECT d.ts, 1 AS one FROM d LEFT JOIN {daily} p ON p.available_at <= d.ts + INTERVAL 12 HOUR GROUP BY d.ts
      HAVING count(*) FILTER (p.available_at > d.ts) = 0;

-- EXCEPT the days of points
{d} SELECT ts, 1 AS one FROM d EXCEPT SELECT t, 1 FROM {most};
