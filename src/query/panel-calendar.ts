import { usage } from '../base/errors.ts'
import { quote } from '../lake/store/engine.ts'
import { spanHint } from '../base/suggestion.ts'
import { isZone, parseDuration, parseInstant, parseMicros } from '../base/time.ts'

/** A grid of decisions: the instants from `since` until before `until`, one step apart. */
export interface CalendarGrid {
  readonly kind: 'calendar'
  /** First instant, a date or an instant in UTC. */
  readonly since: string
  /** End of the grid, exclusive. */
  readonly until: string
  /**
   * Distance of two instants, as DuckDB spells an interval: `900 seconds`, `3 months`. Or an exchange: `XNYS` for the
   * close of each session, `XNYS:open` for its opening. Or a local time: `daily at 09:30 America/New_York`.
   */
  readonly step: string
}

/**
 * Parses a grid of decisions as a person types it: two instants, `until` exclusive, and a step such as `15m`, `1h`,
 * `1d`, `1w` or `3months`, returned in DuckDB's spelling of an interval, or an exchange such as `XNYS`, or a local time.
 */
export function calendarOf(subject: string, words: readonly string[]): CalendarGrid {
  const [since = '', until = '', step = '', ...more] = words.map((part) => part.trim())
  const from = parseInstant(since)
  const to = parseInstant(until)
  const got = `"${words.join(',')}"`
  if (from === undefined || to === undefined || more.length > 0)
    throw usage(subject, { expected: 'SINCE,UNTIL,STEP such as 2024-01-01,2025-01-01,1d', got })
  if (from >= to)
    throw usage(subject, {
      expected: 'SINCE before UNTIL',
      got,
      next: from > to ? 'the two are reversed' : 'UNTIL is exclusive',
    })
  return { kind: 'calendar' as const, since, until, step: stepOf(subject, step) }
}

/** Builds the instants of a grid, for FROM; a reversed grid contains none and is refused. */
export function gridSql(subject: string, { since, until, step }: Omit<CalendarGrid, 'kind'>): string {
  if ((parseMicros(since) ?? 0) > (parseMicros(until) ?? Infinity))
    throw usage(subject, { expected: 'since before until', got: `${since} and ${until}`, next: 'they are reversed' })
  return `calendar(${quote(since)}, ${quote(until)}, ${quote(step)})`
}

/** An exchange in the place of a step: its closes, or its openings. */
const exchangeStep = /^X[A-Z0-9]{3}(?::(?:open|close))?$/

/** A local time of each day in the place of a step. */
const localTimeStep = /^daily at (?:[01]\d|2[0-3]):[0-5]\d (\S+)$/

/** Parses a length of time that may be given in months, as the text of an SQL interval; undefined for other texts. */
export function parseCalendarSpan(text: string): string | undefined {
  const months = /^\s*([1-9]\d{0,3})\s*months?\s*$/.exec(text)?.[1]
  if (months !== undefined) return `${months} months`
  const seconds = parseDuration(text)
  return seconds === undefined ? undefined : `${seconds} seconds`
}

function stepOf(subject: string, text: string): string {
  if (exchangeStep.test(text)) return text
  const [, zone] = localTimeStep.exec(text) ?? []
  if (zone !== undefined) {
    if (isZone(zone)) return text
    throw usage(subject, { expected: 'a zone such as UTC or America/New_York', got: `"${zone}"` })
  }
  const step = parseCalendarSpan(text)
  if (step === undefined || step === '0 seconds')
    throw usage(subject, {
      expected: 'a step such as 1h, 1d, 1w or 1month, an exchange such as XNYS, or daily at 09:30 America/New_York',
      got: `"${text}"`,
      next: spanHint(text, true),
    })
  return step
}
