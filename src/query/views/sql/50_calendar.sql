-- calendar: a grid of decision instants, UTC, from `since` until before `until`.
-- columns: ts.
-- law: L1. A grid taken from the points themselves would look ahead. Each instant is `since` plus n steps, not the one
--   before plus a step: months that are too short give their last day and do not shorten those that follow.
CREATE OR REPLACE MACRO calendar(since, until, step := '1 day') AS TABLE
WITH _pit_bounds AS (
  SELECT epoch_us({{utc since}}) AS first_us, epoch_us({{utc until}}) AS end_us,
    CAST(datepart('year', {{span step}}) * 12 + datepart('month', {{span step}}) AS BIGINT) AS months
),
_pit_step AS (
  SELECT first_us, end_us, months, epoch_us({{span step}}) - months * 30 * 86400000000 AS rest_us
  FROM _pit_bounds
),
_pit_length AS (
  SELECT first_us, end_us, months, rest_us,
    CASE WHEN months < 0 OR rest_us < 0 OR months + rest_us <= 0 THEN CAST(error('a step of ' || CAST(step AS VARCHAR) || ' does not go forward') AS BIGINT)
      ELSE months * 28 * 86400000000 + rest_us END AS least_us
  FROM _pit_step
)
SELECT make_timestamptz(grid.us) AS ts
FROM (
  SELECT epoch_us(make_timestamp(first_us) + to_months(CAST(months * n AS INTEGER))) + rest_us * n AS us, end_us
  FROM (
    SELECT first_us, end_us, months, rest_us, unnest(range(CASE WHEN end_us > first_us THEN ((end_us - first_us) // least_us) + 1 ELSE least_us * 0 END)) AS n
    FROM _pit_length
  )
) AS grid
WHERE grid.us < grid.end_us
ORDER BY 1;
COMMENT ON MACRO TABLE calendar IS 'calendar(since, until, step): decision times ts, UTC, half-open; step is an interval such as ''1 day'', ''1h'' or ''1 month''.';
