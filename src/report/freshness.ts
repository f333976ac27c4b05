import { availableAt } from '../catalog/availability.ts'
import { type Catalogue, type Endpoint, isOwn } from '../catalog/catalogue.ts'
import { type Check, lateFor } from '../config/health.ts'
import { isAnswer } from '../ledger/coverage.ts'
import type { CoverageRow, Verified } from '../ledger/entry.ts'
import { type HeldSeries, storedInterval } from '../ledger/held.ts'
import type { RegistryFacts } from '../registry/status.ts'
import { horizonOf, toleranceOf } from '../metrics/plan.ts'
import { isOfHeld } from '../ledger/refusals.ts'
import {
  count,
  end,
  floor,
  hour,
  type Instant,
  instantOf,
  type Interval,
  monthIndex,
  step,
  type Weekday,
} from '../time.ts'
import { intersect, type Window } from '../windows.ts'

/** How far the newest points of some series are from what the rule makes due now. */
interface FreshCounts {
  /** Everything that is due is held. */
  readonly fresh: number
  /** Asked since it became due, not there yet. */
  readonly awaited: number
  /** Due, and not asked since. */
  readonly behind: number
  /** Asked in vain for longer than the endpoint's tolerance. */
  readonly stopped: number
}

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
  /** For how long its next point has been due, whether or not it was asked for, in seconds. */
  readonly late: number
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
      known ?? (endpoint ? horizonOf(endpoint, interval, now, weekStart).final : floor(now, interval, weekStart))
    horizons.set(key, horizon)
    return judge(one, interval, coverage.get(one.id) ?? [], verified.get(one.id) ?? [], { endpoint, horizon, now })
  })
}

const inTime = { overdue: 0, late: 0 }

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
  if (points <= 0 || first_t === null || last_t === null) return { ...empty, fresh: null, ...inTime }
  const reached = end(last_t, interval)
  const own = against.endpoint !== undefined && isOwn(against.endpoint)
  const withdrawn =
    own || rows.some((row) => row.until > reached && row.state === 'unsupported' && isOfHeld(row.reason))
  // Of what was withdrawn nothing more is due, nor of own data, which come when somebody brings them.
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
    ...(withdrawn ? { fresh: null, ...inTime } : freshness(reached, interval, rows, against)),
  }
}

/** Whether the point after the newest stored one is due, and if so what the provider said when it was asked. */
function freshness(
  reached: Instant,
  interval: Interval,
  rows: readonly CoverageRow[],
  { endpoint, horizon, now }: Against,
): { fresh: keyof FreshCounts; overdue: number; late: number } {
  if (reached >= horizon) return { fresh: 'fresh', ...inTime }
  const late = Math.max(0, now - dueAt(endpoint, reached, interval))
  const said = rows.find((row) => row.since <= reached && row.until > reached)
  const unasked = said === undefined ? reached : lastAsked(rows, reached)
  if (unasked >= horizon && said !== undefined) {
    const patience = endpoint ? toleranceOf(endpoint, interval) : 0
    return { fresh: late > patience ? 'stopped' : 'awaited', overdue: 0, late }
  }
  return { fresh: 'behind', overdue: Math.max(0, now - dueAt(endpoint, unasked, interval)), late }
}

/** The end of the answers that follow on one another from an instant on: a failure is none, but for a refusal. */
function lastAsked(rows: readonly CoverageRow[], from: Instant): Instant {
  let at = from
  for (const row of rows) {
    const answers = isAnswer(row) || isOfHeld(row.reason)
    if (answers && row.since <= at && row.until > at) at = row.until
  }
  return at
}

function dueAt(endpoint: Endpoint | undefined, t: Instant, interval: Interval): Instant {
  return endpoint ? availableAt(endpoint.rules[interval], t, interval) : end(t, interval)
}

/** How long a point may be due without being asked for where no limit says more: no outage of minutes wakes anybody. */
export const patience = hour

/** The series of one endpoint and interval that are late. */
export interface Late {
  readonly metric: string
  readonly interval: Interval
  readonly series: number
  /** For how long the one that is furthest behind has been due. */
  readonly seconds: number
}

/**
 * What is late: beyond the limit for its path, or, where there is none, due without being asked for. What was asked for in
 * vain for too long is `stopped` where no limit says more. With a patience what has stopped is late, too, and what was not
 * asked for only after that time.
 */
export function lateOf(
  series: readonly SeriesStanding[],
  check: Pick<Check, 'maxLate'>,
  atLeast: number | null = null,
): { readonly late: readonly Late[]; readonly stopped: number } {
  const limits = new Map([...new Set(series.map(({ metric }) => metric))].map((path) => [path, lateFor(check, path)]))
  const late = new Map<string, Late>()
  let stopped = 0
  for (const { metric, interval, fresh, overdue, late: due } of series) {
    const limit = limits.get(metric) ?? null
    if (limit === null && fresh === 'stopped') stopped++
    const stale = (fresh === 'behind' && overdue >= (atLeast ?? 0)) || (fresh === 'stopped' && atLeast !== null)
    if (limit === null ? !stale : due <= limit) continue
    const key = `${metric} ${interval}`
    const known = late.get(key) ?? { metric, interval, series: 0, seconds: 0 }
    const seconds = Math.max(known.seconds, limit === null && fresh === 'behind' ? overdue : due)
    late.set(key, { ...known, series: known.series + 1, seconds })
  }
  return { late: [...late.values()], stopped }
}

/** How many intervals the windows hold. */
export function countIn(windows: readonly Window[], interval: Interval): number {
  let total = 0
  for (const window of windows) total += count(window.since, window.until, interval)
  return total
}

/** Adds the intervals of the windows to the months in which they start; months count from `firstMonth`. */
export function addByMonth(
  months: number[],
  windows: readonly Window[],
  interval: Interval,
  { firstMonth, weekStart }: { readonly firstMonth: number; readonly weekStart: Weekday },
): void {
  for (const window of windows) {
    let since = window.since
    while (since < window.until) {
      const border = Math.min(window.until, step(floor(since, '1month'), '1month', 1))
      const index = monthIndex(since) - firstMonth
      if (index >= 0 && index < months.length)
        months[index] = (months[index] ?? 0) + count(since, border, interval, weekStart)
      since = border
    }
  }
}

/** For how long the registry was not polled, in seconds; 0 where it never was. */
export function silenceOf(
  { feed_at, last_snapshot }: Pick<RegistryFacts, 'feed_at' | 'last_snapshot'>,
  now: Instant,
): number {
  const last = feed_at ?? last_snapshot
  return last === null ? 0 : now - instantOf(last)
}
