-- Joins a day's value on the day that it describes: nobody knew it then. `pitlake lookahead` says so.
SELECT c.ts, p.asset, p.v
FROM calendar('2024-01-01', '2024-07-01', '1 day') AS c
JOIN points AS p ON p.t = c.ts
WHERE p.metric = 'addresses/active_count_pit' AND p."interval" = '24h'
