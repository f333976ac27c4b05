import { z } from 'zod'
import { day, type Instant, isZone, parseInstant } from '../base/time.ts'
import { minus, type Window } from '../base/windows.ts'

/** First and last year. */
interface Years {
  readonly first: number
  readonly last: number
}

/** First and last year whose sessions a catalogue may list; the built-in catalogue lists all of them. */
export const sessionYears: Years = { first: 2000, last: 2030 }

/** Code of an exchange: its market identifier code, as ISO 10383 assigns it. */
const code = z.string().regex(/^X[A-Z0-9]{3}$/, 'a market identifier code such as XNYS')
const date = z.string().regex(/^\d{4}-\d\d-\d\d$/, 'a date such as 2024-12-25')
const time = z.string().regex(/^\d\d:\d\d$/, 'a time such as "09:30"')
const year = z
  .string()
  .refine(
    (text) => Number(text) >= sessionYears.first && Number(text) <= sessionYears.last && /^\d+$/.test(text),
    `a year from ${sessionYears.first} to ${sessionYears.last}`,
  )
/** Days of a year, by space; empty if there is none. */
const days = z.string().regex(/^(?:\d\d-\d\d(?: \d\d-\d\d)*)?$/, 'days such as 01-01 12-25')
const timedDays = z
  .string()
  .regex(/^\d\d-\d\d@\d\d:\d\d(?: \d\d-\d\d@\d\d:\d\d)*$/, 'days with a time such as 12-24@13:00')
const announced = z.string().regex(/^\d{4}-\d\d-\d\dT\d\d:\d\dZ$/, 'a time such as 2012-10-29T04:00Z')

const listedKeys = z.strictObject({
  name: z.string().min(1),
  zone: z.string().refine(isZone, 'a zone such as America/New_York'),
  hours: z.array(z.strictObject({ since: date, open: time, close: time })).min(1),
  closed: z.record(year, days),
  early: z.record(year, timedDays).default({}),
  unscheduled: z.record(date, announced).default({}),
})

/** Returns the first and last year that a row lists. */
function listedYears(closed: Readonly<Record<string, string>>): Years {
  const years = Object.keys(closed).map(Number)
  return { first: Math.min(...years), last: Math.max(...years) }
}

/** Reports years without an entry, because each weekday without an entry would count as a session. */
function reportUnlisted(row: z.infer<typeof listedKeys>, { addIssue }: Pick<z.core.$RefinementCtx, 'addIssue'>): void {
  const { hours, closed, early, unscheduled } = row
  const wrong = (path: string[], message: string): void => addIssue({ code: 'custom', message, path })
  const isListed = (key: string): boolean => closed[key.slice(0, 4)] !== undefined
  if (Object.keys(closed).length === 0) return wrong(['closed'], 'at least one year')
  const { first, last } = listedYears(closed)
  for (let year = first; year <= last; year++)
    if (!isListed(String(year))) wrong(['closed', String(year)], `the holidays of ${year}, or "" if it has none`)
  for (const key of Object.keys(early)) if (!isListed(key)) wrong(['early', key], 'a year that `closed` lists')
  for (const key of Object.keys(unscheduled))
    if (!isListed(key)) wrong(['unscheduled', key], 'a day of a year that `closed` lists')
  if (hours.every(({ since }) => since > `${first}-01-01`)) wrong(['hours'], `hours from ${first}-01-01 on`)
}

const listedRow = listedKeys.superRefine(reportUnlisted)

/** The sessions of exchanges, as a catalogue lists them. */
export const sessionRows = z.record(
  code,
  z.union([listedRow, z.strictObject({ name: z.string().min(1), same_as: code })]),
)

/** Sessions by the code of the exchange, as written. */
export type TradingRows = z.infer<typeof sessionRows>

/** Regular hours of an exchange, from a date on. */
interface RegularHours {
  readonly since: string
  /** Local time of the opening: `09:30`. */
  readonly open: string
  /** Local time at which continuous trading ends. */
  readonly close: string
}

/** Trading days and hours of an exchange: Monday to Friday, except the days on which it is closed. */
export interface TradingCalendar {
  /** Market identifier code: `XNYS`. */
  readonly code: string
  /** IANA name of the zone of its times. */
  readonly zone: string
  /** First and last year whose sessions are listed. */
  readonly years: Years
  readonly hours: readonly RegularHours[]
  /** Holidays on weekdays, as dates in ISO form. */
  readonly closed: ReadonlySet<string>
  /** Local time of each early close, by date. */
  readonly early: ReadonlyMap<string, string>
  /** Closures that no published calendar had, by date, each with the time (UTC) at which it was announced. */
  readonly unscheduled: ReadonlyMap<string, string>
}

/**
 * Builds the calendars that the rows of a catalogue list, by code; `undefined` for an exchange that counts as unknown.
 */
export function tradingCalendars(rows: TradingRows): Map<string, TradingCalendar | undefined> {
  const listed = (name: string): TradingCalendar | undefined => {
    const row = rows[name]
    if (row === undefined) return undefined
    if ('same_as' in row) {
      const other = rows[row.same_as]
      const same = other === undefined || 'same_as' in other ? undefined : listed(row.same_as)
      return same && { ...same, code: name }
    }
    const dated = (byYear: Readonly<Record<string, string>>): readonly string[] =>
      Object.entries(byYear).flatMap(([of, text]) => (text === '' ? [] : text.split(' ').map((one) => `${of}-${one}`)))
    const early = dated(row.early).map((one): [string, string] => [one.slice(0, 10), one.slice(11)])
    return {
      code: name,
      zone: row.zone,
      years: listedYears(row.closed),
      hours: row.hours.toSorted((a, b) => (a.since < b.since ? -1 : 1)),
      closed: new Set(dated(row.closed)),
      early: new Map(early),
      unscheduled: new Map(Object.entries(row.unscheduled)),
    }
  }
  return new Map(Object.keys(rows).map((name) => [name, listed(name)]))
}

/** Whether the day that begins at `at` (UTC) has a session. */
export function isSession({ closed, unscheduled }: TradingCalendar, at: Instant): boolean {
  // 1970-01-01 was a Thursday: days 2 and 3 of each week counted from it are a weekend.
  const ofWeek = Math.floor(at / day) % 7
  if (ofWeek === 2 || ofWeek === 3) return false
  const date = dateOf(at)
  return !closed.has(date) && !unscheduled.has(date)
}

/** Formats the date of a timestamp, UTC. */
function dateOf(at: Instant): string {
  return new Date(at * 1000).toISOString().slice(0, 10)
}

/** Returns the parts of a window that lie on days with a session. */
export function onSessions(calendar: TradingCalendar, window: Window): Window[] {
  const first = Math.floor(window.since / day) * day
  const count = Math.ceil((window.until - first) / day)
  const others = Array.from({ length: count }, (_, n) => first + n * day).filter((at) => !isSession(calendar, at))
  return minus(
    [window],
    others.map((since): Window => ({ since, until: since + day })),
  )
}

/** A session: its day and its closing time. */
interface SessionClose {
  /** Start of its day, UTC. */
  readonly day: Instant
  /** Seconds from the start of the day to the close. */
  readonly seconds: number
}

const closes = new WeakMap<TradingCalendar, readonly SessionClose[]>()

/** Lists the close of every session of an exchange, in order. */
export function sessionCloses(calendar: TradingCalendar): readonly SessionClose[] {
  const computed = closes.get(calendar)
  if (computed !== undefined) return computed
  const { zone, years, hours, early } = calendar
  const found: SessionClose[] = []
  const ahead = hoursAhead(zone)
  const first = Date.UTC(years.first, 0, 1) / 1000
  const end = Date.UTC(years.last + 1, 0, 1) / 1000
  for (let at = first; at < end; at += day) {
    if (!isSession(calendar, at)) continue
    const date = dateOf(at)
    const close = early.get(date) ?? hours.findLast(({ since }) => since <= date)?.close ?? '24:00'
    found.push({ day: at, seconds: Number(close.slice(0, 2)) * 3600 + Number(close.slice(3)) * 60 - ahead(at) })
  }
  closes.set(calendar, found)
  return found
}

/**
 * Builds a function that returns how far a zone is ahead of UTC at noon of a day, in seconds. Looking up the zone is
 * slow, so a month with the same offset at its start and end is looked up only there. Clocks change at night, so noon
 * represents the whole session.
 */
function hoursAhead(zone: string): (at: Instant) => number {
  const format = new Intl.DateTimeFormat('sv-SE', { timeZone: zone, dateStyle: 'short', timeStyle: 'medium' })
  const offsets = new Map<Instant, number>()
  const atNoon = (at: Instant): number => {
    const noon = at + day / 2
    const ahead = offsets.get(at) ?? (parseInstant(`${format.format(noon * 1000).replace(' ', 'T')}Z`) ?? noon) - noon
    offsets.set(at, ahead)
    return ahead
  }
  return (at) => {
    const month = new Date(at * 1000)
    const [begin = 0, next = 0] = [0, 1].map(
      (more) => Date.UTC(month.getUTCFullYear(), month.getUTCMonth() + more, 1) / 1000,
    )
    return atNoon(begin) === atNoon(next) ? atNoon(begin) : atNoon(at)
  }
}
