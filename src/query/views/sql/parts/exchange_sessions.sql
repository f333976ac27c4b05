-- _pit_sessions: the sessions of an exchange around those that close from `since` until before `until`.
-- columns: session, opens_at, closes_at, early, since_ts, until_ts, cancelled_at.
-- law: L1. cancelled_at is the time of the announcement, and NULL if it was not announced by as_of.
-- Needs _pit_session_range (code, since_ts, until_ts). Years that the catalogue does not list are refused: each of their
-- weekdays would count as a session.
_pit_listed_years AS (
  SELECT code, since_ts, until_ts, {{session_first}} AS first_ts, {{session_end}} AS end_ts FROM _pit_session_range
),
_pit_session_days AS (
  SELECT code, since_ts, until_ts, CASE
    WHEN NOT list_contains(string_split({{session_codes}}, ', '), code)
      THEN CAST(error(concat('sessions: expected an exchange (', {{session_codes}}, '), got ', code)) AS DATE)
    WHEN since_ts < first_ts OR until_ts > end_ts
      THEN CAST(error(concat('sessions: expected times from ',
        {{utc_text first_ts}}, ' to ', {{utc_text end_ts}}, ', got ',
        {{utc_text since_ts}}, ' and ', {{utc_text until_ts}})) AS DATE)
    ELSE greatest(CAST(timezone('UTC', since_ts) AS DATE) - 1, CAST(timezone('UTC', first_ts) AS DATE)) END AS first,
    least(CAST(timezone('UTC', until_ts) AS DATE) + 1, CAST(timezone('UTC', end_ts) AS DATE)) AS last
  FROM _pit_listed_years
),
_pit_sessions AS (
  SELECT session, opens_at, closes_at, early, since_ts, until_ts,
    CASE WHEN {{unset as_of}} OR announced_at <= {{as_of}} THEN announced_at END AS cancelled_at
  FROM {{sessions _pit_session_days}}
)
