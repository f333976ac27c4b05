import type { Sql } from '../../base/intervals-sql.ts'
import type { TradingCalendar } from '../../catalog/sessions.ts'
import { quote } from '../../lake/store/engine.ts'

/**
 * Builds the sessions of exchanges, for FROM. `asked` is a relation of dates: code, first, last (exclusive). Columns:
 * those of `asked`, session, opens_at, closes_at, early, announced_at. Days with an unscheduled closure are among them:
 * their `announced_at` is the time from which on it was known.
 */
export function sessionsSql(calendars: Iterable<TradingCalendar>, asked: Sql): Sql {
  return `(
  SELECT * EXCLUDE (hours, zone, early_close, announced), timezone(zone, session + hours.open) AS opens_at,
    timezone(zone, session + coalesce(CAST(early_close AS TIME), hours.close)) AS closes_at, early_close IS NOT NULL AS early,
    CAST(announced AS TIMESTAMPTZ) AS announced_at
  FROM (
    SELECT * EXCLUDE (regular, closed, early, unscheduled), list_filter(regular, lambda one: one.since <= session)[-1] AS hours,
      early[CAST(session AS VARCHAR)] AS early_close, unscheduled[CAST(session AS VARCHAR)] AS announced
    FROM (
      SELECT *, unnest(CAST(range(CAST(first AS TIMESTAMP), CAST(last AS TIMESTAMP), INTERVAL 1 DAY) AS DATE[])) AS session
      FROM ${asked} JOIN ${calendarsSql(calendars)} USING (code)
    )
    WHERE isodow(session) < 6 AND NOT list_contains(closed, CAST(session AS VARCHAR))
  )
)`
}

/** Builds the start of a year of the exchange that the column `code` names, UTC; NULL if it is unknown. */
export function yearStartSql(
  calendars: Iterable<TradingCalendar>,
  yearOf: (years: TradingCalendar['years']) => number,
): Sql {
  const starts = [...calendars].map(({ code, years }) => `${quote(code)}: ${Date.UTC(yearOf(years), 0, 1)}000`)
  return `make_timestamptz(MAP {${starts.join(', ')}}[code])`
}

/** Calendars as rows: code, zone, regular (hours), closed (dates), early and unscheduled (maps by date). */
function calendarsSql(calendars: Iterable<TradingCalendar>): Sql {
  const map = (of: ReadonlyMap<string, string>): Sql => `map(${list([...of.keys()])}, ${list([...of.values()])})`
  const rows = [...calendars].map(({ code: own, zone, hours, closed, early, unscheduled }) => {
    const regular = hours.map(
      ({ since, open, close }) =>
        `{'since': DATE ${quote(since)}, 'open': TIME ${quote(open)}, 'close': TIME ${quote(close)}}`,
    )
    // The engine reads no time without seconds.
    const announced = new Map([...unscheduled].map(([date, at]) => [date, at.replace('Z', ':00Z')]))
    return (
      `(${quote(own)}, ${quote(zone)}, [${regular.join(', ')}], ${list([...closed])}, ${map(early)}, ` +
      `${map(announced)})`
    )
  })
  return `(VALUES ${rows.join(',\n    ')}) AS calendars (code, zone, regular, closed, early, unscheduled)`
}

/** Formats a list of words without spaces as SQL: one text, which is read faster than a text for each. */
function list(words: readonly string[]): Sql {
  return words.length === 0 ? 'CAST([] AS VARCHAR[])' : `string_split(${quote(words.join(' '))}, ' ')`
}
