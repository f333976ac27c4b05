/** An instant in whole Unix seconds, UTC. Exact for every year that a JavaScript date can name. */
export type Instant = number

/** The five intervals of the metrics API, shortest first. */
export const intervals = ['10m', '1h', '24h', '1w', '1month'] as const
export type Interval = (typeof intervals)[number]

export const minute = 60
export const hour = 3600
export const day = 86_400

const fixedSeconds: Readonly<Record<Exclude<Interval, '1month'>, number>> = {
  '10m': 600,
  '1h': hour,
  '24h': day,
  '1w': 7 * day,
}

/** 1970-01-05 was a Monday: weeks are counted from it. */
const firstMonday = 4 * day

/** Whether the text names one of the five intervals. */
export function isInterval(text: string): text is Interval {
  return (intervals as readonly string[]).includes(text)
}

/** The length of an interval in seconds; months at their longest, 31 days. */
export function longestSeconds(interval: Interval): number {
  return interval === '1month' ? 31 * day : fixedSeconds[interval]
}

/** The days on which weeks may begin, in the order of their distance from Monday. */
export const weekdays = ['monday', 'tuesday', 'wednesday', 'thursday', 'friday', 'saturday', 'sunday'] as const
export type Weekday = (typeof weekdays)[number]

/** The start of the interval that contains the instant; weeks begin on Monday unless another day is given. */
export function floor(at: Instant, interval: Interval, weekStart: Weekday = 'monday'): Instant {
  if (interval === '1month') return monthStart(monthIndex(at))
  const size = fixedSeconds[interval]
  const phase = interval === '1w' ? firstMonday + weekdays.indexOf(weekStart) * day : 0
  return Math.floor((at - phase) / size) * size + phase
}

/** The earliest start of an interval at or after the instant. */
export function ceil(at: Instant, interval: Interval, weekStart: Weekday = 'monday'): Instant {
  const start = floor(at, interval, weekStart)
  return start === at ? start : end(start, interval)
}

/** The end of the interval that starts at `t` (exclusive): weeks and months end where the calendar says. */
export function end(t: Instant, interval: Interval): Instant {
  return step(t, interval, 1)
}

/** The start of the interval `n` further on (`n` may be negative) from the interval start `t`. */
export function step(t: Instant, interval: Interval, n: number): Instant {
  if (interval === '1month') return monthStart(monthIndex(t) + n)
  return t + n * fixedSeconds[interval]
}

/** Whether `t` is the start of an interval. */
export function onGrid(t: Instant, interval: Interval): boolean {
  return Number.isInteger(t) && floor(t, interval) === t
}

/** How many intervals start in the half-open range `[since, until)`. */
export function count(since: Instant, until: Instant, interval: Interval): number {
  if (until <= since) return 0
  const first = ceil(since, interval)
  const last = ceil(until, interval)
  if (interval === '1month') return monthIndex(last) - monthIndex(first)
  return Math.round((last - first) / fixedSeconds[interval])
}

/** Months since 1970-01 of the month that contains the instant. */
function monthIndex(at: Instant): number {
  const date = new Date(at * 1000)
  return (date.getUTCFullYear() - 1970) * 12 + date.getUTCMonth()
}

/** The first instant of the month with this index. */
function monthStart(index: number): Instant {
  const date = new Date(0)
  date.setUTCFullYear(1970 + Math.floor(index / 12), index - Math.floor(index / 12) * 12, 1)
  return date.getTime() / 1000
}

const dateOnly = /^\d{4}-\d{2}-\d{2}$/
const dateTime = /^(\d{4}-\d{2}-\d{2})[T ](\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?)\s*(Z|[+-]\d{2}:?\d{2})?$/i

/**
 * Reads an ISO date, an ISO date-time (zone-less means UTC) or whole Unix seconds. Four or eight
 * digits are refused: `2024` and `20240301` would be read as instants of 1970.
 * Undefined when the text is none of them or names a day that the calendar does not have.
 */
export function parseInstant(text: string): Instant | undefined {
  const plain = text.trim()
  if (/^-?\d{1,12}$/.test(plain)) return /^(?:\d{4}|\d{8})$/.test(plain) ? undefined : Number(plain)
  const match = dateTime.exec(plain)
  if (!match && !dateOnly.test(plain)) return undefined
  const datePart = match?.[1] ?? plain
  const midnight = Date.parse(`${datePart}T00:00:00Z`)
  if (Number.isNaN(midnight) || new Date(midnight).toISOString().slice(0, 10) !== datePart) return undefined
  const zone = (match?.[3] ?? 'Z').toUpperCase().replace(/^([+-]\d{2})(\d{2})$/, '$1:$2')
  const at = Date.parse(`${datePart}T${match?.[2] ?? '00:00'}${zone}`)
  return Number.isNaN(at) ? undefined : Math.floor(at / 1000)
}

/** RFC 3339 in UTC without fractions: `2024-03-01T00:00:00Z`. */
export function formatInstant(at: Instant): string {
  return new Date(at * 1000).toISOString().replace(/\.\d{3}Z$/, 'Z')
}

/** The UTC date of the instant: `2024-03-01`. */
export function formatDate(at: Instant): string {
  return new Date(at * 1000).toISOString().slice(0, 10)
}

const durationUnits: Readonly<Record<string, number>> = { s: 1, m: minute, h: hour, d: day, w: 7 * day }

/** Reads `90s`, `20m`, `2h`, `3d`, `1w` or a whole number of seconds; undefined when it is none of them. */
export function parseDuration(text: string): number | undefined {
  const match = /^(\d+)\s*(s|m|h|d|w)?$/.exec(text.trim())
  if (!match) return undefined
  const seconds = Number(match[1]) * (durationUnits[match[2] ?? 's'] ?? Number.NaN)
  return Number.isSafeInteger(seconds) ? seconds : undefined
}

/** The shortest exact spelling of a number of seconds: `20m`, `2h`, `3d`. */
export function formatDuration(seconds: number): string {
  for (const unit of ['d', 'h', 'm'] as const) {
    const size = durationUnits[unit] ?? 1
    if (seconds >= size && seconds % size === 0) return `${seconds / size}${unit}`
  }
  return `${seconds}s`
}
