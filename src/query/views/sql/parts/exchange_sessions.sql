-- _pit_sessions: the sessions of an exchange around those that close from `since` until before `until`.
-- columns: session, opens_at, closes_at, early, since_ts, until_ts, cancelled_at.
-- law: L1. cancelled_at is the time of the announcement, and NULL if it was not announced by as_of.
-- Needs _pit_named (code, since_ts, until_ts).
_pit_session_days AS (
  SELECT code, since_ts, until_ts, CASE
    WHEN NOT list_contains(string_split({{session_codes}}, ', '), code)
      THEN CAST(error(concat('sessions: expected an exchange (', {{session_codes}}, '), got ', code)) AS DATE)
    WHEN since_ts < {{session_first}} OR until_ts > {{session_end}}
      THEN CAST(error(concat('sessions: expected times from ',
        {{utc_text {{session_first}}}}, ' to ', {{utc_text {{session_end}}}}, ', got ',
        {{utc_text since_ts}}, ' and ', {{utc_text until_ts}})) AS DATE)
    ELSE CAST(timezone('UTC', since_ts) AS DATE) - 1 END AS first, CAST(timezone('UTC', until_ts) AS DATE) + 1 AS last
  FROM _pit_session_range
),
_pit_sessions AS (
  SELECT session, opens_at, closes_at, early, since_ts, until_ts,
    CASE WHEN {{unset as_of}} OR announced_at <= {{as_of}} THEN announced_at END AS cancelled_at
  FROM {{sessions _pit_session_days}}
)
