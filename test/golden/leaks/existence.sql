-- What turns on whether something comes at all.

-- a grid taken from points
SELECT t AS ts, count(*) AS n FROM {daily} GROUP BY ALL;

-- how many points there are
{d} SELECT ts, (SELECT count(*) FROM {daily}) AS n FROM d;

-- whether they are an even number
{d} SELECT ts, (SELECT count(*) % 2 = 0 FROM {daily}) AS even FROM d;

-- whether more is to come
{d} SELECT d.ts, EXISTS (FROM {daily} p WHERE p.t > d.ts) AS more FROM d;

-- assets of which something came much later
SELECT c.ts, count(*) AS n FROM ({days75}) c, points p WHERE p.metric = '{metric}' AND p.asset IN
    (SELECT asset FROM points WHERE t > '2024-03-01' AND metric = '{metric}') AND p.available_at <= c.ts GROUP BY c.ts;

-- the last day of all
{d} SELECT ts, ts = (SELECT max(date_trunc('day', available_at)) FROM {daily}) AS last FROM d;

-- how late the point of the day will be
{d} SELECT d.ts, p.available_at - p.t AS late FROM d {own};

-- how long a series is
{d} SELECT ts, (SELECT points FROM series WHERE metric = '{metric}' AND asset = 'BTC') AS n FROM d;

-- days on which nothing comes
{d} SELECT d.ts, 1 AS one FROM d ANTI JOIN {daily} p ON p.available_at > d.ts AND p.available_at <= d.ts + INTERVAL 1 DAY;
