-- Queries that look ahead, each in a way of its own, and the words that its report must hold.

-- joined on t
{onGrid} SELECT d.ts, d.asset, p.v FROM d LEFT JOIN {daily} p ON p.asset = d.asset AND p.t = d.ts; -- joined on t

-- a centred mean
{onGrid} SELECT d.ts, d.asset, m.v FROM d LEFT JOIN (SELECT asset, t, avg(v) OVER (PARTITION BY asset ORDER BY t
       ROWS BETWEEN 3 PRECEDING AND 3 FOLLOWING) AS v FROM {daily}) m ON m.asset = d.asset AND m.t = d.ts - INTERVAL 3 DAY; -- centred window

-- the month's mean given to each of its days
{onGrid} SELECT d.ts, d.asset, m.v FROM d LEFT JOIN (SELECT asset, date_trunc('month', t) AS month, avg(v) AS v
       FROM {daily} GROUP BY ALL) m ON m.asset = d.asset AND m.month = date_trunc('month', d.ts); -- whole week, month or year

-- survivors only
SELECT c.ts, count(*) AS held FROM calendar('2024-02-01', '2024-10-01', INTERVAL 1 DAY) c, products p
       WHERE p.status = 'active' GROUP BY c.ts; -- survivors only

-- a z-score over the whole sample
SELECT ts, asset, (v - avg(v) OVER (PARTITION BY asset)) / stddev(v) OVER (PARTITION BY asset) AS z
       FROM pit_join(d, '{lateMetric}', '24h'); -- whole sample

-- survivors found through points
SELECT c.ts, count(*) AS held FROM calendar('2024-02-01', '2024-10-01', INTERVAL 1 DAY) c, points p
       WHERE p.asset IN (SELECT asset FROM points WHERE t > '2024-10-20') AND p.available_at <= c.ts GROUP BY c.ts; -- ^survivors only: assets chosen

-- decisions moved by an hour
SELECT ts - INTERVAL 1 HOUR AS ts, asset, v FROM pit_join(m, '{lateMetric}', '24h'); -- decisions of a join were moved

-- quantiles of the whole sample, a BIGINT column
SELECT ts, asset, ntile(5) OVER (ORDER BY v) AS q FROM pit_join(d, '{lateMetric}', '24h'); -- a statistic of the whole sample

-- a rank among all decisions, by a named window
SELECT ts, asset, percent_rank() OVER w AS r FROM pit_join(d, '{lateMetric}', '24h')
       WINDOW w AS (PARTITION BY asset ORDER BY v); -- a statistic of the whole sample

-- a join on t whose ranks are those of each day
{onGrid} SELECT d.ts, d.asset, rank() OVER (PARTITION BY d.ts ORDER BY p.v) AS r FROM d
       LEFT JOIN {daily} p ON p.asset = d.asset AND p.t = d.ts; -- joined on t

-- a grid taken from points
SELECT t AS ts, asset, count(*) AS n FROM {daily} GROUP BY ALL; -- grid is taken from points
