/** A timestamp in whole Unix seconds, UTC. Exact for every year that a JavaScript date can represent. */
export type Instant = number

/** Unix microseconds, UTC: the unit of every commit's clock. */
export type Micros = number

export const minute = 60
export const hour = 3600
export const day = 86_400

/** The length of an interval: seconds, or calendar months with the fewest and the most days of these. */
interface Measure {
  readonly seconds: number
  /** A divisor of twelve: every year begins with an interval. */
  readonly months: 0 | 1 | 3
  readonly days: readonly [fewest: number, most: number]
  /** Whether it begins on the first day of the week. */
  readonly weekly: boolean
  /** Whether a provider may offer it; otherwise only user files have it. */
  readonly offered: boolean
}

/**
 * The one table of intervals, shortest first: all code that counts, cuts or names intervals, in TypeScript or SQL
 * (`intervals-sql.ts`), is derived from it. An interval is either seconds or months, never both.
 */
const table = {
  '10m': { seconds: 10 * minute, months: 0, days: [0, 0], weekly: false, offered: true },
  '1h': { seconds: hour, months: 0, days: [0, 0], weekly: false, offered: true },
  '24h': { seconds: day, months: 0, days: [0, 0], weekly: false, offered: true },
  '1w': { seconds: 7 * day, months: 0, days: [0, 0], weekly: true, offered: true },
  '1month': { seconds: 0, months: 1, days: [28, 31], weekly: false, offered: true },
  '3month': { seconds: 0, months: 3, days: [90, 92], weekly: false, offered: false },
} as const satisfies Readonly<Record<string, Measure>>

export type Interval = keyof typeof table

/** All intervals, shortest first. */
export const intervals = Object.keys(table) as readonly string[] as readonly [Interval, ...Interval[]]

/** Intervals that a provider may offer and that may be requested, shortest first. */
export const offeredIntervals = intervals.filter(
  (interval) => table[interval].offered,
) as readonly string[] as readonly [Interval, ...Interval[]]

/** Intervals that begin on the week's first day. */
export const weeklyIntervals: readonly Interval[] = intervals.filter((interval) => table[interval].weekly)

/** The interval under which points are stored if the series names none and the points have not shown theirs yet. */
export const unshownInterval: Interval = '24h'

/** 1970-01-05 was a Monday: weeks are counted from it. */
const firstMonday = 4 * day

/** Whether the text names one of the intervals. */
export function isInterval(text: string): text is Interval {
  return Object.hasOwn(table, text)
}

/** Whether the text names an interval that a provider may offer. */
export function isOffered(text: string): text is Interval {
  return isInterval(text) && table[text].offered
}

/** Returns the seconds or months of an interval. */
export function measureOf(interval: Interval): Measure {
  return table[interval]
}

/** Returns the length of an interval in seconds; months and quarters at their longest, 31 and 92 days. */
export function longestSeconds(interval: Interval): number {
  const { seconds, days } = table[interval]
  return seconds + days[1] * day
}

/** Returns the length of an interval in seconds; months and quarters at their shortest, 28 and 90 days. */
export function shortestSeconds(interval: Interval): number {
  const { seconds, days } = table[interval]
  return seconds + days[0] * day
}

/** The days on which weeks may begin, in the order of their distance from Monday. */
export const weekdays = ['monday', 'tuesday', 'wednesday', 'thursday', 'friday', 'saturday', 'sunday'] as const
export type Weekday = (typeof weekdays)[number]

/** Returns the first interval start after 1970 for an interval of seconds; weeks start on the given day. */
export function phaseOf(interval: Interval, weekStart: Weekday = 'monday'): number {
  return table[interval].weekly ? firstMonday + weekdays.indexOf(weekStart) * day : 0
}

/** Returns the weekday of a week's start. */
export function weekdayAt(start: Instant): Weekday {
  const days = Math.floor((start - firstMonday) / day)
  return weekdays[((days % 7) + 7) % 7] ?? 'monday'
}

/** Returns the start of the interval that contains a timestamp; weeks begin on Monday unless another day is given. */
export function floor(at: Instant, interval: Interval, weekStart: Weekday = 'monday'): Instant {
  const { seconds, months } = table[interval]
  if (months > 0) return monthStart(Math.floor(monthIndex(at) / months) * months)
  const phase = phaseOf(interval, weekStart)
  return Math.floor((at - phase) / seconds) * seconds + phase
}

/** Returns the earliest start of an interval at or after a timestamp. */
export function ceil(at: Instant, interval: Interval, weekStart: Weekday = 'monday'): Instant {
  const start = floor(at, interval, weekStart)
  return start === at ? start : end(start, interval)
}

/** Returns the exclusive end of the interval that starts at `t`; weeks, months and quarters follow the calendar. */
export function end(t: Instant, interval: Interval): Instant {
  return step(t, interval, 1)
}

/** Returns the start of the interval `n` after the interval start `t`; `n` may be negative. */
export function step(t: Instant, interval: Interval, n: number): Instant {
  const { seconds, months } = table[interval]
  return months > 0 ? monthStart(monthIndex(t) + n * months) : t + n * seconds
}

/** Counts the intervals that start in the half-open range `[since, until)`. */
export function count(since: Instant, until: Instant, interval: Interval, weekStart: Weekday = 'monday'): number {
  const first = ceil(since, interval, weekStart)
  const last = ceil(until, interval, weekStart)
  const { seconds, months } = table[interval]
  return Math.max(
    0,
    months > 0 ? (monthIndex(last) - monthIndex(first)) / months : Math.round((last - first) / seconds),
  )
}

/** Returns the number of months from 1970-01 to the month that contains a timestamp. */
export function monthIndex(at: Instant): number {
  const date = new Date(at * 1000)
  return (date.getUTCFullYear() - 1970) * 12 + date.getUTCMonth()
}

/** Returns the start of the month with this index. */
function monthStart(index: number): Instant {
  const date = new Date(0)
  date.setUTCFullYear(1970 + Math.floor(index / 12), index - Math.floor(index / 12) * 12, 1)
  return date.getTime() / 1000
}

const isoForm =
  /^(\d{4}-\d{2}-\d{2})(?:[T ](\d{2}:\d{2})(?:(:\d{2})(?:\.(\d+))?)?\s*(?:Z|([+-]\d{2})(?::?(\d{2}))?)?)?$/i

/**
 * Parses an ISO text into whole seconds and the millionths beyond; undefined for other texts, and for a day that the
 * calendar does not have.
 */
function readIso(text: string): { readonly seconds: Instant; readonly millionths: number } | undefined {
  const [, date = '', minutes = '00:00', rest = '', fraction = '', hours = '+00', beyond = '00'] =
    isoForm.exec(text) ?? []
  const midnight = Date.parse(`${date}T00:00:00Z`)
  if (Number.isNaN(midnight) || formatDate(midnight / 1000) !== date) return undefined
  const at = Date.parse(`${date}T${minutes}${rest}${hours}:${beyond}`)
  if (Number.isNaN(at)) return undefined
  return { seconds: at / 1000, millionths: Number(fraction.padEnd(6, '0').slice(0, 6)) }
}

/**
 * Reads an ISO date, an ISO date-time (zone-less means UTC) or whole Unix seconds. Four or eight digits are refused:
 * `2024` and `20240301` would be read as times in 1970. Undefined for any other text, and for a day that the calendar
 * does not have.
 */
export function parseInstant(text: string): Instant | undefined {
  const plain = text.trim()
  if (/^-?\d{1,12}$/.test(plain)) return /^(?:\d{4}|\d{8})$/.test(plain) ? undefined : Number(plain)
  return readIso(plain)?.seconds
}

/** Reads an ISO date or date-time (zone-less means UTC) to the microsecond; undefined when it is neither. */
export function parseMicros(text: string): Micros | undefined {
  const read = readIso(text.trim())
  return read && read.seconds * 1_000_000 + read.millionths
}

/** Parses the timestamp in a text that this program or its engine wrote; any other text is an error. */
export function microsOf(text: string): Micros {
  const micros = parseMicros(text)
  if (micros === undefined) throw new RangeError(`${text} is no instant`)
  return micros
}

/** Converts a timestamp to seconds since 1970, with their fraction. */
export function instantOf(text: string): Instant {
  return microsOf(text) / 1_000_000
}

/**
 * Reads the date of a header in Unix milliseconds, rounded up to a second; ISO texts without a zone and the old asctime
 * form mean UTC, never the zone of this machine.
 */
export function parseHeaderDate(text: string): number | undefined {
  const read = readIso(text.trim())
  if (read) return (read.seconds + (read.millionths > 0 ? 1 : 0)) * 1000
  const seconds = parseInstant(text)
  if (seconds !== undefined) return seconds * 1000
  if (!/[A-Za-z]{3}/.test(text)) return undefined
  const at = Date.parse(/(?:GMT|UTC|Z|[+-]\d{2}:?\d{2})$/i.test(text) ? text : `${text} GMT`)
  return Number.isNaN(at) ? undefined : at
}

/** Formats a timestamp by RFC 3339 in UTC without fractions: `2024-03-01T00:00:00Z`. */
export function formatInstant(at: Instant): string {
  return `${new Date(at * 1000).toISOString().slice(0, -5)}Z`
}

/** Formats a timestamp by RFC 3339 in UTC with all of its microseconds: `2024-03-01T00:00:00.000001Z`. */
export function formatMicros(at: Micros): string {
  const millis = Math.floor(at / 1000)
  return `${new Date(millis).toISOString().slice(0, -1)}${String(at - millis * 1000).padStart(3, '0')}Z`
}

/** Formats microseconds as ISO text with milliseconds: `2024-03-01T00:00:00.000Z`. */
export function formatMillis(at: Micros): string {
  return new Date(at / 1000).toISOString()
}

/** Formats the UTC date of a timestamp: `2024-03-01`. */
export function formatDate(at: Instant): string {
  return new Date(at * 1000).toISOString().slice(0, 10)
}

const durationUnits: Readonly<Record<string, number>> = { s: 1, m: minute, h: hour, d: day, w: 7 * day }

/**
 * Parses `90s`, `20m`, `2h`, `3d` or `1w` in seconds; undefined for any other text, including a number without a unit,
 * unless it is 0.
 */
export function parseDuration(text: string): number | undefined {
  const plain = text.trim()
  if (plain === '0') return 0
  const [, count = '', unit = ''] = /^(\d+)\s*([smhdw]|seconds?|minutes?|hours?|days?|weeks?)$/.exec(plain) ?? []
  const seconds = count === '' ? Number.NaN : Number(count) * (durationUnits[unit.charAt(0)] ?? Number.NaN)
  return Number.isSafeInteger(seconds) ? seconds : undefined
}

/** Formats a number of seconds in the shortest exact way: `20m`, `2h`, `3d`. */
export function formatDuration(seconds: number): string {
  for (const unit of ['d', 'h', 'm'] as const) {
    const size = durationUnits[unit] ?? 1
    if (seconds >= size && seconds % size === 0) return `${seconds / size}${unit}`
  }
  return `${seconds}s`
}

/** Whether a text is the name of a time zone, such as `America/New_York`. */
export function isZone(zone: string): boolean {
  try {
    return new Intl.DateTimeFormat('en', { timeZone: zone }).resolvedOptions().timeZone !== ''
  } catch {
    return false
  }
}
