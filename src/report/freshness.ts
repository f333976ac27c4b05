import { availableAt } from '../catalog/availability.ts'
import type { Catalogue, Endpoint } from '../catalog/catalogue.ts'
import type { CoverageRow, Verified } from '../ledger/entry.ts'
import { type HeldSeries, storedInterval } from '../ledger/held.ts'
import type { FreshCounts } from './page/standing.ts'
import { horizonOf, toleranceOf } from '../metrics/plan.ts'
import { isOfHeld } from '../ledger/refusals.ts'
import { count, end, floor, type Instant, type Interval, monthIndex, step, type Weekday } from '../time.ts'
import { intersect, type Window } from '../windows.ts'

/** One series against what the rule makes due now. */
export interface SeriesStanding {
  readonly metric: string
  readonly interval: Interval
  readonly points: number
  readonly newest: Instant | null
  /** From the first point to the newest interval that is due; null for a series without points. */
  readonly due: Window | null
  /** Where points are held, and where answers failed, within the due range. */
  readonly held: readonly Window[]
  readonly failed: readonly Window[]
  /** Where what is held was asked again with the same answer. */
  readonly verified: readonly Window[]
  /** Null for a series without points, and for one that was withdrawn. */
  readonly fresh: keyof FreshCounts | null
  /** For how long its next point has been due without being asked for, in seconds. */
  readonly overdue: number
}

/** Judges every series; pure. Series of endpoints that the catalogue no longer has are due when their interval ends. */
export function judgeSeries(
  series: Iterable<HeldSeries>,
  coverage: ReadonlyMap<string, readonly CoverageRow[]>,
  verified: ReadonlyMap<string, readonly Verified[]>,
  catalogue: Catalogue,
  now: Instant,
  weekStart: Weekday,
): SeriesStanding[] {
  const horizons = new Map<string, Instant>()
  return [...series].map((one) => {
    const endpoint = catalogue.endpoints.get(one.metric)
    const interval = storedInterval(one)
    const key = `${one.metric} ${interval}`
    const known = horizons.get(key)
    const horizon =
      known ?? (endpoint ? horizonOf(endpoint, interval, now, weekStart).settled : floor(now, interval, weekStart))
    horizons.set(key, horizon)
    return judge(one, interval, coverage.get(one.id) ?? [], verified.get(one.id) ?? [], { endpoint, horizon, now })
  })
}

interface Against {
  readonly endpoint: Endpoint | undefined
  readonly horizon: Instant
  readonly now: Instant
}

function judge(
  series: HeldSeries,
  interval: Interval,
  rows: readonly CoverageRow[],
  verified: readonly Verified[],
  against: Against,
): SeriesStanding {
  const { metric, points, first_t, last_t } = series
  const empty = { metric, interval, points, newest: last_t, due: null, held: [], failed: [], verified: [] }
  if (points <= 0 || first_t === null || last_t === null) return { ...empty, fresh: null, overdue: 0 }
  const reached = end(last_t, interval)
  const withdrawn = rows.some((row) => row.until > reached && row.state === 'unsupported' && isOfHeld(row.reason))
  // Of what was withdrawn nothing more is due.
  const due = { since: first_t, until: withdrawn ? reached : Math.max(reached, against.horizon) }
  const held = rows.filter((row) => row.state === 'covered' && row.reason === null)
  const failed = rows.filter((row) => row.state === 'failed')
  const same = verified.filter((row) => row.result === 'identical')
  return {
    ...empty,
    due,
    held: intersect([due], held),
    failed: intersect([due], failed),
    verified: intersect(held, same),
    ...(withdrawn ? { fresh: null, overdue: 0 } : freshness(reached, interval, rows, against)),
  }
}

/** Whether the point after the newest stored one is due, and if so what the provider said when it was asked. */
function freshness(
  reached: Instant,
  interval: Interval,
  rows: readonly CoverageRow[],
  { endpoint, horizon, now }: Against,
): { fresh: keyof FreshCounts; overdue: number } {
  if (reached >= horizon) return { fresh: 'fresh', overdue: 0 }
  const said = rows.find((row) => row.since <= reached && row.until > reached)
  const unasked = said === undefined ? reached : lastAsked(rows, reached)
  if (unasked >= horizon && said !== undefined) {
    const patience = endpoint ? toleranceOf(endpoint, interval) : 0
    const age = now - dueAt(endpoint, reached, interval)
    return { fresh: age > patience ? 'stopped' : 'awaited', overdue: 0 }
  }
  return { fresh: 'behind', overdue: Math.max(0, now - dueAt(endpoint, unasked, interval)) }
}

/** The end of the answers that follow on one another from an instant on: failed ones answer nothing, but for a refusal. */
function lastAsked(rows: readonly CoverageRow[], from: Instant): Instant {
  let at = from
  for (const row of rows) {
    const answers = row.state !== 'failed' || isOfHeld(row.reason)
    if (answers && row.since <= at && row.until > at) at = row.until
  }
  return at
}

function dueAt(endpoint: Endpoint | undefined, t: Instant, interval: Interval): Instant {
  return endpoint ? availableAt(endpoint.rules[interval], t, interval) : end(t, interval)
}

/** How many intervals the windows hold. */
export function countIn(windows: readonly Window[], interval: Interval): number {
  let total = 0
  for (const window of windows) total += count(window.since, window.until, interval)
  return total
}

/** Adds the intervals of the windows to the months in which they start; months count from `firstMonth`. */
export function addByMonth(months: number[], firstMonth: number, windows: readonly Window[], interval: Interval): void {
  for (const window of windows) {
    let since = window.since
    while (since < window.until) {
      const border = Math.min(window.until, step(floor(since, '1month'), '1month', 1))
      const index = monthIndex(since) - firstMonth
      if (index >= 0 && index < months.length) months[index] = (months[index] ?? 0) + count(since, border, interval)
      since = border
    }
  }
}
