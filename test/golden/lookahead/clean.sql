-- Queries that do not.

-- a point-in-time join
{onGrid} SELECT * EXCLUDE (observed) FROM (SELECT *, 1 AS observed FROM pit_join(d, '{lateMetric}', '24h'));

-- a mean over the last values known, and the universe of the day
{onGrid}, u AS (SELECT DISTINCT ts FROM d), n AS (SELECT ts, count(*) AS held FROM pit_universe(u) GROUP BY ts)
       SELECT ts, asset, avg(v / 3 ORDER BY nth) AS mean, any_value(held) AS held FROM pit_window(d, '{lateMetric}', '24h', 7)
       LEFT JOIN n USING (ts) GROUP BY ts, asset;
