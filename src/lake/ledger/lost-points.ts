import { minus, union, type Window } from '../../base/windows.ts'
import { type Entry, type Forgotten, forgottenFields } from './entry.ts'
import { addDigests } from './month-digests.ts'
import { type Index, rowOf } from './index-rows.ts'
import { count, orNull, real, text, wholeNumber } from '../../base/value-checks.ts'
import { formatMillis, type Micros } from '../../base/time.ts'

/** A stored value that a violation has on record. */
export interface RecordedValue {
  /** Seconds. */
  readonly t: number
  /** JSON text; null if only its `computed_at` is on record. */
  readonly value: string | null
  /** The point's `computed_at` as JSON text, seconds; null if it is not on record. */
  readonly computed: string | null
  /** Time at which the value was received, microseconds. */
  readonly stored_at: Micros
}

/** A window, half-open in seconds, with the time of the commit that first stored its points in this lake. */
interface Seen extends Window {
  readonly observed: Micros
}

/** A month of a series with lost points; `digest` is that of the lost points, null if none was stored. */
type LostRange = Pick<Forgotten, 'month' | 'since' | 'until' | 'digest'>

/** The points of one series that were lost with files and not received again, with the facts still known about them. */
export interface Lost {
  /** Disjoint. */
  readonly months: readonly LostRange[]
  /** Disjoint. */
  readonly seen: readonly Seen[]
  /** Every answer about its windows. */
  readonly asked: readonly (Seen & { readonly asked_at: number })[]
  /** Lost values that violations have on record. */
  readonly recorded: readonly RecordedValue[]
}

/** Records the points that were lost with a file, and those that were received again. */
export function applyLost(
  index: Index,
  version: number,
  numberOf: (id: string) => number,
  { forgotten = [], regained = [] }: Pick<Entry, 'forgotten' | 'regained'>,
): void {
  const put = index.statement(
    'INSERT INTO forgotten (series, month, since, until, points, digest, added_version) VALUES (?, ?, ?, ?, ?, ?, ?)',
  )
  for (const { series, month, since, until, points, digest } of forgotten)
    put.run(numberOf(series), month, since, until, points, digest, version)
  const end = index.statement(
    `UPDATE forgotten SET regained_version = ?, regained = ?, proven = ?
     WHERE series = ? AND month = ? AND regained_version IS NULL`,
  )
  for (const { series, month, points, proven } of regained)
    end.run(version, points, Number(proven), numberOf(series), month)
}

const { month, since, until, points, digest } = forgottenFields
const forgottenOf = rowOf({ month, since, until, points, digest, added_version: count })

/** Points of one month that one commit lost with a file and that have not been received again. */
interface LostMonth extends Pick<Forgotten, 'month' | 'since' | 'until' | 'points' | 'digest'> {
  /** The version whose commit recorded the loss. */
  readonly added_version: number
}

/** Reads the losses of these series that were not received again, by id; only series with such losses. */
export function storedLosses(index: Index, ids: readonly string[]): Map<string, Lost> {
  const lostBySeries = new Map<string, Lost>()
  const rows = index.statement(
    `SELECT f.* FROM forgotten f JOIN series s ON s.n = f.series
     WHERE s.id = ? AND regained_version IS NULL ORDER BY month, added_version`,
  )
  for (const id of new Set(ids)) {
    const forgotten = rows.all(id).map(forgottenOf)
    if (forgotten.length === 0) continue
    const last = Math.max(...forgotten.map(({ added_version }) => added_version))
    lostBySeries.set(id, { months: byMonth(forgotten), ...knownThen(index, id, last), recorded: recordedOf(index, id) })
  }
  return lostBySeries
}

/** Combines the losses of one month from several versions; these points are received again together. */
function byMonth(lostMonths: readonly LostMonth[]): LostRange[] {
  return [...Map.groupBy(lostMonths, (lostMonth) => lostMonth.month)].map(([name, parts]) => ({
    month: name,
    since: Math.min(...parts.map((part) => part.since)),
    until: Math.max(...parts.map((part) => part.until)),
    digest:
      parts
        .map((part) => (part.digest === null ? null : { points: 0, digest: part.digest }))
        .reduce((a, b) => a && b && addDigests(a, b))?.digest ?? null,
  }))
}

const askedOf = rowOf({
  since: wholeNumber,
  until: wholeNumber,
  state: text,
  reason: orNull(text),
  asked_at: wholeNumber,
  observed: count,
})

/** Reads the recorded coverage of a series from before the loss. */
function knownThen(index: Index, id: string, before: number): Pick<Lost, 'seen' | 'asked'> {
  const rows = index.statement(
    `SELECT c.since, c.until, c.state, c.reason, c.asked_at, v.committed_at AS observed FROM coverage c
     JOIN series s ON s.n = c.series JOIN versions v ON v.version = c.added_version
     WHERE s.id = ? AND c.state IN ('covered', 'empty') AND c.added_version < ? ORDER BY c.added_version`,
  )
  const requested = rows.all(id, before).map(askedOf)
  const seen: Seen[] = []
  let knownWindows: Window[] = []
  for (const { since, until, observed } of requested.filter(
    ({ state, reason }) => state === 'covered' && reason === null,
  )) {
    for (const fresh of minus([{ since, until }], knownWindows)) seen.push({ ...fresh, observed })
    knownWindows = union([...knownWindows, { since, until }])
  }
  return {
    seen,
    asked: requested.map(({ since, until, asked_at, observed }) => ({ since, until, asked_at, observed })),
  }
}

const recordOf = rowOf({ t: real, kind: text, stored: orNull(text), stored_at: orNull(real) })

/** Reads the stored values that violations, open or acknowledged, have on record; of several the latest counts. */
function recordedOf(index: Index, id: string): RecordedValue[] {
  const rows = index.statement(
    `SELECT v.t, v.kind, v.stored, v.stored_at FROM violations v JOIN series s ON s.n = v.series
     WHERE s.id = ? ORDER BY v.offered_at, v.added_version`,
  )
  const found = new Map<number, RecordedValue>()
  for (const { t, kind, stored, stored_at } of rows.all(id).map(recordOf)) {
    if (stored === null || stored_at === null) continue
    const { value, computed } = found.get(t) ?? { value: null, computed: null }
    const storedValue = kind === 'computed_at_changed' ? { value, computed: stored } : { value: stored, computed }
    found.set(t, { t, ...storedValue, stored_at })
  }
  return [...found.values()]
}

const againOf = rowOf({
  id: text,
  month,
  since: wholeNumber,
  until: wholeNumber,
  points: orNull(count),
  at: orNull(real),
})

/** A month of a series whose points were partly lost with a file. */
export interface ObservedAgain {
  /** Id of the series. */
  readonly series: string
  /** `2024-06`. */
  readonly month: string
  /** Start of the hull of the lost windows, seconds. */
  readonly since: number
  /** End of that hull, half-open, seconds. */
  readonly until: number
  /** Points that were lost, or received again if they were; null if unknown. */
  readonly points: number | null
  /**
   * Time at which they were observed again and from which on they are known, microseconds; null if they were not
   * received again.
   */
  readonly at: Micros | null
}

/** Lists these months, except those whose points were received again unchanged. */
export function observedAgain(index: Index): ObservedAgain[] {
  const rows = index.statement(
    `SELECT s.id, f.month, f.since, f.until, coalesce(f.regained, f.points) AS points, v.committed_at AS at
     FROM forgotten f JOIN series s ON s.n = f.series LEFT JOIN versions v ON v.version = f.regained_version
     WHERE f.proven IS NOT 1 ORDER BY s.n, f.since, f.added_version`,
  )
  return rows.all().map((row) => {
    const { id, ...rest } = againOf(row)
    return { series: id, ...rest }
  })
}

/** Describes a month that lost points, in one line. */
export function describeObservedAgain({ series, month: name, points: lostCount, at }: ObservedAgain): string {
  const what = `${series} ${name}: ${lostCount === null ? 'points' : `${lostCount} points`} lost with a file`
  if (at === null) return `${what}, not come again`
  const seen = formatMillis(at)
  return `${what}, observed again and known from ${seen} on; backfill = 'rule' lets their rule date them`
}
