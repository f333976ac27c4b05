-- sessions: the sessions of an exchange that close from `since` until before `until`.
-- columns: session, opens_at, closes_at, early.
-- law: L1. Calendars are published ahead. A cancelled session is left out from its announcement on, so an earlier
--   as_of still shows it.
CREATE OR REPLACE MACRO sessions(since, until, exchange) AS TABLE
WITH _pit_session_range AS (
  SELECT upper(CAST(exchange AS VARCHAR)) AS code, {{utc since}} AS since_ts, {{utc until}} AS until_ts
),
{{part exchange_sessions}}
SELECT session, opens_at, closes_at, early FROM _pit_sessions
WHERE since_ts <= closes_at AND closes_at < until_ts AND cancelled_at IS NULL
ORDER BY 1;
COMMENT ON MACRO TABLE sessions IS 'sessions(since, until, exchange): trading sessions, half-open by their close: session (its date), opens_at, closes_at, early (closes earlier than usual); exchange is a code such as ''XNYS''.';
