import { availableAt } from '../../catalog/availability.ts'
import type { Catalogue, Endpoint } from '../../catalog/catalogue.ts'
import { type Check, lateFor } from '../../catalog/health.ts'
import { isAnswer } from '../../lake/ledger/coverage.ts'
import type { CoverageRow, Verified } from '../../lake/ledger/entry.ts'
import { type StoredSeries, storedInterval } from '../../lake/ledger/index-queries.ts'
import { fetchStarts, importArrivals, isWatched } from '../../lake/ledger/run-queries.ts'
import { isOwnPath } from '../../sources/points/own-rows.ts'
import { horizonOf, toleranceOf } from '../../sources/metrics/plan.ts'
import { isOfHeld } from '../../lake/ledger/refusals.ts'
import { day, end, floor, hour, type Instant, instantOf, type Interval, type Weekday } from '../../base/time.ts'
import { intersect, type Window } from '../../base/windows.ts'
import type { Ledger } from '../../lake/ledger/ledger.ts'

/**
 * Freshness of the newest points of a series against those due now by the rule: all of them are stored; requested since
 * the next became due, not there yet; due, and not requested since; requested in vain for longer than the endpoint's
 * tolerance, as of the last request.
 */
type Freshness = 'fresh' | 'pending' | 'behind' | 'stopped'

/** Standing of one series against what is due now by the rule. */
export interface SeriesStanding {
  readonly metric: string
  readonly interval: Interval
  readonly points: number
  readonly newest: Instant | null
  /** Window from the first point to the newest interval that is due; null for a series without points. */
  readonly due: Window | null
  /** Windows of stored points, and of failed answers, within the due range. */
  readonly held: readonly Window[]
  readonly failed: readonly Window[]
  /** Whether its next point was requested, and the answer failed. */
  readonly failing: boolean
  /** Windows in which stored points were requested again with the same answer. */
  readonly verified: readonly Window[]
  /** Null for a series without points, and for one that was withdrawn or is no longer selected. */
  readonly fresh: Freshness | null
  /** Seconds for which its next point has been due without being requested. */
  readonly overdue: number
  /** Seconds for which its next point has been due, whether or not it was requested. */
  readonly late: number
}

/** Judges every series; pure. Series of endpoints that the catalogue no longer has are due when their interval ends. */
export function judgeSeries(
  series: Iterable<StoredSeries>,
  coverage: ReadonlyMap<string, readonly CoverageRow[]>,
  verified: ReadonlyMap<string, readonly Verified[]>,
  catalogue: Catalogue,
  now: Instant,
  weekStart: Weekday,
  /** Series that fetches still request; null: all. Nothing more is due of others. */
  selected: ReadonlySet<string> | null = null,
): SeriesStanding[] {
  const horizons = new Map<string, Instant>()
  return [...series].map((standing) => {
    const endpoint = catalogue.endpoints.get(standing.metric)
    const interval = storedInterval(standing)
    const key = `${standing.metric} ${interval}`
    const knownHorizon = horizons.get(key)
    const horizon =
      knownHorizon ?? (endpoint ? horizonOf(endpoint, interval, now, weekStart).final : floor(now, interval, weekStart))
    horizons.set(key, horizon)
    return judge(standing, interval, coverage.get(standing.id) ?? [], verified.get(standing.id) ?? [], {
      endpoint,
      horizon,
      now,
      isSelected: selected?.has(standing.id) ?? true,
    })
  })
}

const inTime = { overdue: 0, late: 0 }

interface Against {
  readonly endpoint: Endpoint | undefined
  readonly horizon: Instant
  readonly now: Instant
  /** Whether fetches still request the series. */
  readonly isSelected: boolean
}

function judge(
  series: StoredSeries,
  interval: Interval,
  rows: readonly CoverageRow[],
  verified: readonly Verified[],
  against: Against,
): SeriesStanding {
  const { metric, points, first_t, last_t } = series
  const empty = {
    metric,
    interval,
    points,
    newest: last_t,
    due: null,
    held: [],
    failed: [],
    failing: false,
    verified: [],
  }
  if (points <= 0 || first_t === null || last_t === null) return { ...empty, fresh: null, ...inTime }
  const reached = end(last_t, interval)
  const isUserData = isOwnPath(metric)
  const withdrawn =
    isUserData || rows.some((row) => row.until > reached && row.state === 'unsupported' && isOfHeld(row.reason))
  // Nothing more is due of a series that was withdrawn or is no longer selected, nor of user data.
  const isComplete = withdrawn || !against.isSelected
  const due = { since: first_t, until: isComplete ? reached : Math.max(reached, against.horizon) }
  const coveredRows = rows.filter((row) => row.state === 'covered' && row.reason === null)
  const failed = rows.filter((row) => row.state === 'failed')
  const same = verified.filter((row) => row.result === 'identical')
  return {
    ...empty,
    due,
    held: intersect([due], coveredRows),
    failed: intersect([due], failed),
    failing: failed.some(({ since, until }) => since <= reached && until > reached),
    verified: intersect(coveredRows, same),
    ...(isComplete ? { fresh: null, ...inTime } : freshness(reached, interval, rows, against)),
  }
}

/** Judges whether the point after the newest stored one is due, and if so by the provider's answer to the request. */
function freshness(
  reached: Instant,
  interval: Interval,
  rows: readonly CoverageRow[],
  { endpoint, horizon, now }: Against,
): { fresh: Freshness; overdue: number; late: number } {
  if (reached >= horizon) return { fresh: 'fresh', ...inTime }
  const due = dueAt(endpoint, reached, interval)
  const late = Math.max(0, now - due)
  const patience = endpoint ? toleranceOf(endpoint, interval) : 0
  const answer = rows.find((row) => row.since <= reached && row.until > reached)
  const unasked = answer === undefined ? reached : lastAsked(rows, reached)
  if (unasked >= horizon && answer !== undefined)
    return { fresh: late > patience ? 'stopped' : 'pending', overdue: 0, late }
  const overdue = Math.max(0, now - dueAt(endpoint, unasked, interval))
  // A series that had stopped when it was last requested does not resume because one more point is due before the next
  // run.
  const stopped = answer !== undefined && unasked > reached && answer.asked_at - due > patience
  return { fresh: stopped ? 'stopped' : 'behind', overdue, late }
}

/** Finds the end of consecutive answers from an instant on: a failure is none, unless it is a refusal. */
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

/** Seconds of runs from which their rhythm is read, back from the last of them. */
const rhythmSpan = 14 * day
/** Runs of fewer days than this show no rhythm yet. */
const leastRhythmSpan = 1.5 * day

/**
 * Computes the usual pause between runs: the second longest of two weeks, so that a single outage is no habit, and
 * neither is a burst of runs of one day. The `least` newest runs count however old they are. Null while there are too
 * few of them.
 */
export function rhythmOf(instants: readonly Instant[], least = 0): number | null {
  const last = instants.at(-1)
  if (last === undefined) return null
  const recent = instants.filter((at, nth) => at >= last - rhythmSpan || nth >= instants.length - least)
  const pauses = recent.slice(1).map((at, i) => at - (recent[i] ?? at))
  const [, second = null] = pauses.toSorted((a, b) => b - a)
  return last - (recent[0] ?? last) < leastRhythmSpan ? null : second
}

/** Seconds added to every limit, so that an outage of minutes raises no alarm. */
const margin = hour

/**
 * Computes how long a point may be due without being requested if `check.max_late` is not set (seconds): until the next
 * run of the schedule has had time for it. If the configuration has none, it is the lake's own rhythm; a watch requests
 * at once. Until a rhythm is learnt, it is the documented one of a run a day.
 */
export function defaultMaxLate(ledger: Ledger, { schedule }: Pick<Check, 'schedule'>): number {
  if (schedule !== null) return schedule + margin
  const starts = fetchStarts(ledger).map((at) => Math.floor(at / 1_000_000))
  return isWatched(ledger) ? margin : (rhythmOf(starts) ?? day) + margin
}

/** The series of one endpoint and interval that are late. */
export interface Late {
  readonly metric: string
  readonly interval: Interval
  readonly series: number
  /** Number of them that were requested and got only failures. */
  readonly inVain: number
  /** Seconds for which the one that is furthest behind has been due. */
  readonly seconds: number
}

/** Late series, and those requested in vain for longer than their endpoint's tolerance. */
export interface LateSeries {
  readonly late: readonly Late[]
  readonly stopped: readonly Late[]
}

/**
 * Finds late series: beyond the limit for their path, or, without one, due for longer than `maxLate` (seconds) without
 * an answer. Series requested in vain for too long have stopped, unless a limit allows more. Hooks, `status`, its page,
 * `--check` and `/healthz` judge by this alone.
 */
export function lateOf(series: readonly SeriesStanding[], check: Pick<Check, 'maxLate'>, maxLate: number): LateSeries {
  const limits = new Map([...new Set(series.map(({ metric }) => metric))].map((path) => [path, lateFor(check, path)]))
  const late = new Map<string, Late>()
  const stopped = new Map<string, Late>()
  for (const standing of series) {
    const { metric, interval, fresh, overdue, late: due } = standing
    const limit = limits.get(metric) ?? null
    const isStopped = limit === null && fresh === 'stopped'
    const isLate = limit === null ? overdue > maxLate : due > limit
    if (!isStopped && !isLate) continue
    const into = isLate ? late : stopped
    const key = `${metric} ${interval}`
    const total = into.get(key) ?? { metric, interval, series: 0, inVain: 0, seconds: 0 }
    const seconds = Math.max(total.seconds, limit === null && isLate ? overdue : due)
    into.set(key, { ...total, series: total.series + 1, inVain: total.inVain + (standing.failing ? 1 : 0), seconds })
  }
  return { late: [...late.values()], stopped: [...stopped.values()] }
}

/** User data of a metric that no longer come as they used to. */
export interface SilentUserData {
  readonly metric: string
  /** Time of the last addition, and the length of the pauses before. */
  readonly last: Instant
  readonly rhythm: number
}

/** Minimum imports that show the rhythm of monthly and quarterly ones. */
const fewImports = 4

/**
 * Finds metrics of user data whose last news is older than half again the usual pause between imports with news, and
 * than a limit for their path allows.
 */
export function silentUserData(ledger: Ledger, check: Pick<Check, 'maxLate'>, now: Instant): SilentUserData[] {
  return [...importArrivals(ledger)].flatMap(([metric, arrivals]) => {
    const instants = arrivals.map((at) => Math.floor(at / 1_000_000))
    const last = instants.at(-1)
    const rhythm = rhythmOf(instants, fewImports)
    if (last === undefined || rhythm === null) return []
    const allowed = Math.max(1.5 * rhythm + margin, lateFor(check, metric) ?? 0)
    return now - last > allowed ? [{ metric, last, rhythm }] : []
  })
}

/** Times of the last requests to the registry, as text. */
interface RegistryTimes {
  /** Last poll of the feed that came to its tail; null if there is none. */
  readonly feed_at: string | null
  /** Date of the last snapshot; null if there is none. */
  readonly last_snapshot: string | null
}

/** Computes the seconds for which the registry was not polled; 0 if it never was. */
export function silenceOf({ feed_at, last_snapshot }: RegistryTimes, now: Instant) {
  const last = feed_at ?? last_snapshot
  return last === null ? 0 : now - instantOf(last)
}
