-- calendar: a grid of decision times in UTC, from `since` until before `until`. It has steps of one length, or the
--   closes (or opens) of an exchange's sessions, or a local time of each day.
-- columns: ts.
-- law: L1. A grid built from the points would look ahead, so this one reads no points.
--   Each time is `since` plus n steps, not the previous time plus a step. A month that is too short gives its last
--   day and does not shorten the months after it.
--   A local time that a zone's clocks skip is the one that they show an hour later. If they show it twice, the later
--   one counts.
--   A cancelled session is left out if the cancellation was known at the session's own time and by as_of.
CREATE OR REPLACE MACRO calendar(since, until, step := '1 day') AS TABLE
WITH _pit_exchange AS (
  SELECT parsed.*, coalesce(parsed.local_time.zone, '') <> '' AS is_local
  FROM (
    SELECT upper(CAST(step AS VARCHAR)) AS step_text,
      regexp_full_match(upper(CAST(step AS VARCHAR)), 'X[A-Z0-9]{3}(:OPEN|:CLOSE)?') AS is_exchange,
      regexp_extract(CAST(step AS VARCHAR), '^daily at ((?:[01][0-9]|2[0-3]):[0-5][0-9]) (\S+)$', ['clock', 'zone'])
        AS local_time
  ) AS parsed
),
_pit_session_range AS (
  SELECT left(step_text, 4) AS code, {{utc since}} AS since_ts, {{utc until}} AS until_ts
  FROM _pit_exchange WHERE is_exchange
),
{{part exchange_sessions}},
_pit_closes AS (
  SELECT CASE WHEN ends_with(step_text, ':OPEN') THEN opens_at ELSE closes_at END AS ts, since_ts, until_ts, cancelled_at
  FROM _pit_sessions CROSS JOIN _pit_exchange
),
_pit_local_days AS (
  SELECT local_time, since_ts, until_ts, date_trunc('day', timezone('UTC', since_ts)) AS first_day,
    unnest(range(-1, datediff('day', since_ts, until_ts) + 3)) AS n
  FROM (SELECT local_time, {{utc since}} AS since_ts, {{utc until}} AS until_ts FROM _pit_exchange WHERE is_local)
),
-- A day of the zone begins up to a day before or after that of UTC. A day that the zone skips gives the next one again.
_pit_local_times AS (
  SELECT DISTINCT timezone(local_time.zone, first_day + to_days(CAST(n AS INTEGER)) + to_minutes(
    CAST(left(local_time.clock, 2) AS BIGINT) * 60 + CAST(right(local_time.clock, 2) AS BIGINT))) AS ts, since_ts, until_ts
  FROM _pit_local_days
),
_pit_interval AS (
  SELECT CASE WHEN is_exchange OR is_local THEN INTERVAL 1 DAY ELSE {{span step}} END AS step_length
  FROM _pit_exchange WHERE NOT is_exchange AND NOT is_local
),
_pit_bounds AS (
  SELECT epoch_us({{utc since}}) AS first_us, epoch_us({{utc until}}) AS end_us, step_length,
    CAST(datepart('year', step_length) * 12 + datepart('month', step_length) AS BIGINT) AS months
  FROM _pit_interval
),
_pit_step AS (
  SELECT first_us, end_us, months, epoch_us(step_length) - months * 30 * 86400000000 AS rest_us
  FROM _pit_bounds
),
_pit_length AS (
  SELECT first_us, end_us, months, rest_us,
    CASE WHEN months < 0 OR rest_us < 0 OR months + rest_us <= 0
      THEN CAST(error('a step of ' || CAST(step AS VARCHAR) || ' does not go forward') AS BIGINT)
      ELSE months * 28 * 86400000000 + rest_us END AS shortest_us
  FROM _pit_step
)
SELECT make_timestamptz(grid.us) AS ts
FROM (
  SELECT epoch_us(make_timestamp(first_us) + to_months(CAST(months * n AS INTEGER))) + rest_us * n AS us, end_us
  FROM (
    SELECT first_us, end_us, months, rest_us,
      unnest(range(CASE WHEN end_us > first_us THEN ((end_us - first_us) // shortest_us) + 1
        ELSE shortest_us * 0 END)) AS n
    FROM _pit_length
  )
) AS grid
WHERE grid.us < grid.end_us
UNION ALL
SELECT ts FROM _pit_closes
WHERE since_ts <= ts AND ts < until_ts AND (cancelled_at IS NULL OR cancelled_at > ts)
UNION ALL
SELECT ts FROM _pit_local_times WHERE since_ts <= ts AND ts < until_ts
ORDER BY 1;
COMMENT ON MACRO TABLE calendar IS 'calendar(since, until, step): decision times ts, UTC, half-open; step is an interval such as ''1 day'', ''1h'' or ''1 month'', or an exchange: ''XNYS'' gives the close of each session, ''XNYS:open'' the opening; or a local time: ''daily at 09:30 America/New_York''.';
