import { z } from 'zod'
import { day, type Instant, parseInstant } from '../base/time.ts'
import { minus, type Window } from '../base/windows.ts'

/** First and last year whose sessions are listed. */
export const sessionYears = { first: 2000, last: 2030 } as const

/** Code of an exchange: its market identifier code, as ISO 10383 assigns it. */
const code = z.string().regex(/^X[A-Z0-9]{3}$/, 'a market identifier code such as XNYS')
const date = z.string().regex(/^\d{4}-\d\d-\d\d$/, 'a date such as 2024-12-25')
const time = z.string().regex(/^\d\d:\d\d$/, 'a time such as "09:30"')
const year = z.string().regex(/^20[0-3]\d$/, 'a year from 2000 to 2030')
/** Days of a year, by space. */
const days = z.string().regex(/^\d\d-\d\d(?: \d\d-\d\d)*$/, 'days such as 01-01 12-25')
const timedDays = z
  .string()
  .regex(/^\d\d-\d\d@\d\d:\d\d(?: \d\d-\d\d@\d\d:\d\d)*$/, 'days with a time such as 12-24@13:00')
const announced = z.string().regex(/^\d{4}-\d\d-\d\dT\d\d:\d\dZ$/, 'a time such as 2012-10-29T04:00Z')

const listedRow = z.strictObject({
  name: z.string().min(1),
  zone: z.string().min(1),
  hours: z.array(z.strictObject({ since: date, open: time, close: time })).min(1),
  closed: z.record(year, days),
  early: z.record(year, timedDays).default({}),
  unscheduled: z.record(date, announced).default({}),
})

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
      Object.entries(byYear).flatMap(([of, text]) => text.split(' ').map((one) => `${of}-${one}`))
    const early = dated(row.early).map((one): [string, string] => [one.slice(0, 10), one.slice(11)])
    return {
      code: name,
      zone: row.zone,
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
  const { zone, hours, early } = calendar
  const found: SessionClose[] = []
  const ahead = hoursAhead(zone)
  const first = Date.UTC(sessionYears.first, 0, 1) / 1000
  const end = Date.UTC(sessionYears.last + 1, 0, 1) / 1000
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
