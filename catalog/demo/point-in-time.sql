-- Each day at 01:00 UTC: long Bitcoin while adjusted SOPR is above its mean of 20 days, short while it is below.
WITH decisions AS (SELECT ts FROM calendar('2024-01-01 01:00', '2026-06-30', '1 day')),
signal AS (
  SELECT t, available_at, v - avg(v) OVER (ORDER BY t ROWS BETWEEN 19 PRECEDING AND CURRENT ROW) AS strength
  FROM points
  WHERE metric = 'indicators/sopr_adjusted_pit' AND asset = 'BTC' AND "interval" = '24h' AND v IS NOT NULL
)
SELECT d.ts, sign(s.strength) AS position
FROM decisions AS d
ASOF JOIN signal AS s ON d.ts >= s.available_at
ORDER BY d.ts
