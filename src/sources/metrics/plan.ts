import { availableAt, type Rule } from '../../catalog/availability.ts'
import type { Endpoint, EndpointRules } from '../../catalog/catalogue.ts'
import type { Series, Wanted } from '../../catalog/series.ts'
import { isOfHeld, readRefusal, refusalPatience } from '../../lake/ledger/refusals.ts'
import { isAnswer } from '../../lake/ledger/coverage.ts'
import type { WindowAnswer } from '../../lake/ledger/entry.ts'
import { storedInterval } from '../../lake/ledger/index-queries.ts'
import {
  ceil,
  count,
  day,
  floor,
  formatDate,
  type Instant,
  type Interval,
  longestSeconds,
  step,
  type Weekday,
} from '../../base/time.ts'
import { bridge, intersect, minus, union, type Window } from '../../base/windows.ts'
import { type RefusedPaths, refusalOf, refusedPaths, wasHeld } from './path-refusals.ts'
import {
  beforeStart,
  isOfMetadata,
  isUnlisted,
  standingOf,
  type MetadataStanding,
  type SeriesMetadata,
} from './metadata-readings.ts'

/** The stored data of a series, as planning needs them. */
export interface Held {
  readonly metric: string
  readonly points: number
  readonly answers: readonly WindowAnswer[]
  /** The interval under which its points are stored, if the endpoint itself takes none. */
  readonly settled: Interval | null
  /** Range of open differences that may end by themselves: the next run requests it again. */
  readonly doubtful?: Window | undefined
}

/** The bounds and prices of a plan. */
export interface PlanLimits {
  readonly requestsPerMinute: number
  /** Credits per request by asset, `*` for the others. */
  readonly credits: Readonly<Record<string, number>>
  /** The day on which the provider's weeks begin; Monday by default. */
  readonly weekStart?: Weekday
  /** Whether only known gaps are requested. */
  readonly gapsOnly: boolean
  /**
   * Whether every interval that has ended is requested, even before its assumed rule; for callers that know that it may
   * be available.
   */
  readonly eager?: boolean
  /** Returns the reason why a series must not be requested from this provider; null if it may be. */
  readonly blocked: (series: Series, endpoint: Endpoint) => string | null
  /** Returns the provider's metadata of a series with their time; null if there are none. */
  readonly metadataOf?: (series: Series, endpoint: Endpoint) => SeriesMetadata | null
}

/** One request: a window of a series, or the whole series if the endpoint takes no range. */
export interface Ask {
  readonly series: Series
  readonly endpoint: Endpoint
  readonly interval: Interval
  /** The range to request, overlap included; null if the endpoint takes neither since nor until. */
  readonly window: Window | null
  /** The part of the wanted range that this request resolves. */
  readonly settles: Window
  readonly points: number
  readonly credits: number
  /**
   * Whether a recorded refusal closes its path to series that have points, or to others; one of them finds out whether
   * it still applies.
   */
  readonly refused?: 'held' | 'new'
}

/** The state that the lake has recorded for a window, and the answer that it follows from. */
export type RecordedStanding = Pick<WindowAnswer, 'state' | 'asked_at' | 'request'>

/** A window of a series that is not requested, with the reason. */
export interface BlockedWindow extends Pick<Ask, 'series' | 'endpoint' | 'interval'> {
  readonly window: Window
  /** Reason for not requesting it. */
  readonly reason: string
  /** The recorded answer, from a standing refusal or from metadata; null if a name is not mapped. */
  readonly recorded: RecordedStanding | null
}

/** Size and cost of a plan. */
export type PlanTotals = {
  /** Wanted series. */
  readonly series: number
  /** Missing windows; neighbouring ones may share a request. */
  readonly windows: number
  /** Number of requests. */
  readonly requests: number
  /** Cost of the requests. */
  readonly credits: number
  /** New points that the requests should return. */
  readonly points: number
  /** Estimated size of the bodies. */
  readonly bytes: number
  /** Estimated duration at the configured pace. */
  readonly seconds: number
}

/** The very object that `fetch` executes and `plan` prints. */
export interface Plan {
  /** Requests in the order of the wanted series. */
  readonly asks: readonly Ask[]
  /** Wanted windows that are not requested. */
  readonly blocked: readonly BlockedWindow[]
  readonly totals: PlanTotals
  /** Notes for the user to read before fetching. */
  readonly notes: readonly string[]
}

/** Start of history if nothing else determines it: the first block of the oldest chain. */
export const historyStart: Instant = Date.UTC(2009, 0, 3) / 1000

/** Number of stored points that a top-up requests again, as a constant check of immutability. */
const overlapPoints = 5

/** Points of one answer: few long windows before many short, but not longer than this. */
const longestAnswer = 80_000
/** Maximum number of points between two missing windows that are requested together. */
const bridgedPoints = 5000

/** Typical size of a point on the wire, for the estimate. */
const bytesPerPoint = 56

const week = 7 * day
const gapPatience = 90 * day
const emptyPatience = 30 * day

/** Plans the requests that complete the wanted series; pure, in the order of `wanted`. */
export function plan(
  wantedSeries: readonly Wanted[],
  storedSeries: ReadonlyMap<string, Held>,
  limits: PlanLimits,
  now: Instant,
): Plan {
  const paths = refusedPaths(storedSeries)
  const horizonFor = horizonsBy(limits, now)
  const judged = wantedSeries.map((want) => {
    const known = storedSeries.get(want.series.id)
    const interval = storedInterval({ interval: want.series.interval, settled: known?.settled ?? null })
    return judgeSeries({ want, known, interval, horizon: horizonFor(want.endpoint, interval), limits, now }, paths)
  })
  const asks = judged.flatMap((series) => series.asks)
  const windows = judged.reduce((sum, series) => sum + series.windows, 0)
  const points = judged.reduce((sum, series) => sum + series.points, 0)
  const silent = Map.groupBy(
    judged.flatMap((series) => series.silent ?? []),
    (reason) => reason,
  )
  const unmappedNotes = [...silent].map(([reason, { length }]) => `${length} series not requested: ${reason}`)
  return {
    asks,
    blocked: judged.flatMap((series) => series.blocked),
    totals: { ...totalsOf(wantedSeries.length, windows, asks, limits), points },
    notes: [...notesOf(wantedSeries, now), ...unmappedNotes],
  }
}

/** Returns a function for the horizon of an endpoint and an interval, which many series share. */
function horizonsBy(
  { eager, weekStart }: PlanLimits,
  now: Instant,
): (endpoint: Endpoint, interval: Interval) => Horizon {
  const horizons = new Map<string, Horizon>()
  return (endpoint, interval) => {
    const key = `${endpoint.path} ${interval}`
    const horizon =
      horizons.get(key) ?? horizonOf(eager === true ? unassumed(endpoint) : endpoint, interval, now, weekStart)
    horizons.set(key, horizon)
    return horizon
  }
}

/** The part of a plan that is about one series. */
interface SeriesPlan {
  readonly asks: readonly Ask[]
  readonly blocked: readonly BlockedWindow[]
  /** Number of missing windows that the requests resolve. */
  readonly windows: number
  /** Number of new points that the requests should return. */
  readonly points: number
  /** Reason for not requesting it because a name is not mapped, if the lake has already recorded that; else null. */
  readonly silent: string | null
}

const nothingPlanned: SeriesPlan = { asks: [], blocked: [], windows: 0, points: 0, silent: null }

/** Plans the requests of one series, or says why its missing windows are not requested. */
function judgeSeries(line: Line, paths: RefusedPaths): SeriesPlan {
  const { want, known, limits, now } = line
  const range = wantedRange(line)
  if (range.since >= range.until) return nothingPlanned
  const unmapped = limits.blocked(want.series, want.endpoint)
  const metadata = metadataStanding(line)
  const { refusal, suspect, isShared } = refusalOf(want.endpoint.path, known, paths, now)
  const missing = missingWindows(line, range, { placeholder: unmapped !== null, suspect, ...metadata })
  const doubtful = doubtfulOf(line, range, missing.length > 0)
  if (missing.length + doubtful.length === 0) return { ...nothingPlanned, silent: unmapped }
  const recorded = (unmapped === null && !limits.gapsOnly ? refusal : null) ?? metadata.unlisted
  const reason = unmapped ?? recorded?.reason ?? null
  if (reason !== null) {
    const silent = missing.length === 0 ? unmapped : null
    return { ...nothingPlanned, blocked: blockedWindows(line, missing, reason, recorded), silent }
  }
  const early = intersect(missing, [{ since: Number.NEGATIVE_INFINITY, until: metadata.begins }])
  const blocked = blockedWindows(line, early, beforeStart, { state: 'empty', asked_at: metadata.at, request: null })
  const windows = union([...minus(missing, early), ...doubtful])
  const requests = requestsFor(line, windows)
  const refused = wasHeld(known) ? 'held' : 'new'
  return {
    asks: isShared ? requests.map((ask) => ({ ...ask, refused })) : requests,
    blocked,
    windows: windows.length,
    points: requests.reduce((sum, ask) => sum + expectedOf(ask, known), 0),
    silent: null,
  }
}

/** Returns the range of a series that is wanted and can be expected, on its grid; empty if none can. */
function wantedRange({ want, interval, horizon, limits: { weekStart } }: Line): Window {
  const until = want.until === null ? Infinity : ceil(want.until, interval, weekStart)
  return { since: ceil(want.since ?? historyStart, interval, weekStart), until: Math.min(until, horizon.final) }
}

/** Returns the consequences of the provider's metadata for a series. */
function metadataStanding({ want, known, interval, limits }: Line): MetadataStanding {
  const { series, endpoint, exact } = want
  const kind = exact === true ? 'exact' : limits.gapsOnly || wasHeld(known) ? 'held' : 'new'
  const metadata = limits.metadataOf?.(series, endpoint) ?? null
  return standingOf(metadata, known?.answers ?? [], kind, (at) => floor(at, interval, limits.weekStart))
}

function blockedWindows(
  { want: { series, endpoint }, interval }: Line,
  windows: readonly Window[],
  reason: string,
  recorded: RecordedStanding | null,
): BlockedWindow[] {
  return windows.map((window) => ({ series, endpoint, interval, window, reason, recorded }))
}

/**
 * Returns the ranges of open differences. A run of `watch`, which returns in minutes, requests them only together with
 * others (`asks`).
 */
function doubtfulOf({ want: { endpoint }, known, interval, limits }: Line, range: Window, asks: boolean): Window[] {
  const at = known?.doubtful
  if (!at || endpoint.overlap !== 'exact' || limits.gapsOnly || (limits.eager === true && !asks)) return []
  return intersect([range], [{ since: at.since, until: ceil(at.until, interval, limits.weekStart) }])
}

/** A wanted series, with the facts that determine its requests. */
interface Line {
  readonly want: Wanted
  readonly known: Held | undefined
  readonly interval: Interval
  readonly horizon: Horizon
  readonly limits: PlanLimits
  readonly now: Instant
}

/** Counts the new points that a request should return: those without a final answer, or still pending. */
function expectedOf({ settles, interval }: Ask, known: Held | undefined): number {
  const decided = (known?.answers ?? []).filter(
    (answer) => isAnswer(answer) && answer.reason !== 'pending' && !isOfMetadata(answer),
  )
  let points = 0
  for (const { since, until } of minus([settles], decided)) points += count(since, until, interval)
  return points
}

/** The end of the range for which answers can be expected, on the grid of an interval. */
export interface Horizon {
  /** End of the newest interval whose availability time has passed. */
  readonly final: Instant
  /** End of the newest interval that has ended. */
  readonly complete: Instant
}

/** Returns the end of the range for which answers can be expected now, by the availability rules of an endpoint. */
export function horizonOf(
  endpoint: Pick<Endpoint, 'rules'>,
  interval: Interval,
  now: Instant,
  weekStart?: Weekday,
): Horizon {
  const rules = endpoint.rules[interval]
  const complete = floor(now, interval, weekStart)
  let final = complete
  while (availableAt(rules, step(final, interval, -1), interval) > now) final = step(final, interval, -1)
  return { final, complete }
}

/** Returns the rules of an endpoint without assumed lags. */
function unassumed({ rules }: Pick<Endpoint, 'rules'>): Pick<Endpoint, 'rules'> {
  const unassumedRules = Object.entries(rules).map(([interval, list]) => [
    interval,
    list.map((rule): Rule => (rule.basis === 'stated' ? rule : { ...rule, kind: 'lag', seconds: 0 })),
  ])
  return { rules: Object.fromEntries(unassumedRules) as EndpointRules }
}

/** Returns the time after its availability for which a missing point stays pending, in seconds. */
export function toleranceOf(endpoint: Pick<Endpoint, 'tolerance'>, interval: Interval): number {
  return endpoint.tolerance ?? Math.max(2 * day, 3 * longestSeconds(interval))
}

/** The facts about a series in addition to its answers. */
interface Marks extends Pick<MetadataStanding, 'unlisted' | 'noted'> {
  /** Whether a name of the series is not mapped. */
  readonly placeholder: boolean
  /** Whether its refused path is tried again now. */
  readonly suspect: boolean
}

function missingWindows(line: Line, range: Window, marks: Marks): Window[] {
  const { answers = [], points = 0 } = line.known ?? {}
  if (!line.limits.gapsOnly)
    return minus(
      [range],
      answers.filter((answer) => isSettled(line, answer, marks)),
    )
  const gaps = answers.filter((answer) => (isHole(answer) ? isOverdue(line, answer) : isAlarm(answer, points)))
  return minus([range], minus([range], gaps))
}

const isHole = (answer: WindowAnswer): boolean => answer.state === 'covered' && answer.reason !== null

/** Whether points of a series that has some were refused here. */
function isAlarm({ state, reason }: WindowAnswer, points: number): boolean {
  return points > 0 && (state === 'failed' || state === 'unsupported') && isOfHeld(reason)
}

/** Returns the time since the availability of an answer's last point. */
function ageOf({ want: { endpoint }, interval, limits, now }: Line, { until }: WindowAnswer): number {
  return (
    now - availableAt(endpoint.rules[interval], step(ceil(until, interval, limits.weekStart), interval, -1), interval)
  )
}

/** Whether the missing points of an answer are no longer pending. */
function isOverdue(line: Line, answer: WindowAnswer): boolean {
  return ageOf(line, answer) > toleranceOf(line.want.endpoint, line.interval)
}

/** Whether an answer still counts; one from the far future (a clock was wrong) does not. */
function isSettled(line: Line, answer: WindowAnswer, marks: Marks): boolean {
  const { known, now } = line
  const since = Math.abs(now - answer.asked_at)
  switch (answer.state) {
    case 'failed':
    case 'not requested':
      return false
    case 'unsupported':
      if (answer.reason?.startsWith(placeholderReason) === true) return marks.placeholder
      if (isUnlisted(answer)) return marks.unlisted !== null
      if (marks.suspect && readRefusal(answer.reason)?.scope === 'path') return false
      return since < refusalPatience && !((known?.points ?? 0) > 0 && isStale(answer))
    case 'empty':
      if (answer.reason === beforeStart) return answer.until <= marks.noted
      return isOverdue(line, answer) && since < emptyPatience
    case 'covered':
      if (answer.reason === null) return true
      return isOverdue(line, answer) && (ageOf(line, answer) > gapPatience || since < week)
    default:
      return answer.state satisfies never
  }
}

/** Whether a series was refused as one that never had points. */
function isStale({ reason }: WindowAnswer): boolean {
  const refusal = readRefusal(reason)
  return refusal !== null && refusal.scope !== 'range' && refusal.since === null
}

/** First word of the reason of a window that was not requested because a placeholder has no real name yet. */
export const placeholderReason = 'placeholder'

/**
 * Returns the credits of a request for an asset. Only own keys of the settings count, because providers choose the
 * names of assets.
 */
export function priceOf(credits: Readonly<Record<string, number>>, asset: string): number {
  return (Object.hasOwn(credits, asset) ? credits[asset] : credits['*']) ?? 1
}

function requestsFor(line: Line, missing: readonly Window[]): Ask[] {
  const { want, interval, horizon, limits } = line
  const { series, endpoint } = want
  const credits = priceOf(limits.credits, series.asset)
  const first = missing[0]
  const last = missing.at(-1)
  if (!first || !last) return []
  const hull = { since: first.since, until: last.until }
  if (!endpoint.since && !endpoint.until) {
    const points = count(historyStart, horizon.complete, interval)
    return [{ series, endpoint, interval, window: null, settles: hull, points, credits }]
  }
  // If a request can name only one end, two windows would return the same points twice.
  const whole = !endpoint.since || !endpoint.until
  const bridged = whole ? [hull] : bridge(missing, bridgedPoints * longestSeconds(interval))
  const joined = whole ? bridged : bridged.flatMap((window) => pieces(window, interval))
  return joined.map((settles) => {
    const window = widen(line, settles)
    return { series, endpoint, interval, window, settles, points: count(window.since, window.until, interval), credits }
  })
}

/** Splits a window so that no answer has more points than are read at once within the memory. */
function pieces({ since, until }: Window, interval: Interval): Window[] {
  const cuts: Instant[] = [since]
  for (let cut = step(since, interval, longestAnswer); cut < until; cut = step(cut, interval, longestAnswer))
    cuts.push(cut)
  return cuts.map((cut, i) => ({ since: cut, until: cuts[i + 1] ?? until }))
}

/**
 * Widens a window by the overlap with stored points before it (except at open differences), and up to the newest ended
 * interval if it reaches the horizon.
 */
function widen({ want, known, interval, horizon, limits }: Line, settles: Window): Window {
  const stored = (known?.answers ?? []).filter((a) => a.state === 'covered' && a.since < settles.since)
  const before = union(stored).find((covered) => covered.until >= settles.since)
  const alone = before === undefined || settles.since === known?.doubtful?.since
  const since = alone ? settles.since : Math.max(step(settles.since, interval, -overlapPoints), before.since)
  const until = settles.until === horizon.final ? Math.min(want.until ?? Infinity, horizon.complete) : settles.until
  return { since, until: Math.max(settles.until, ceil(until, interval, limits.weekStart)) }
}

/** Adds up the size and the cost of requests. */
export function totalsOf(
  series: number,
  windows: number,
  asks: readonly Ask[],
  limits: Pick<PlanLimits, 'requestsPerMinute'>,
): PlanTotals {
  let credits = 0
  let points = 0
  for (const ask of asks) {
    credits += ask.credits
    points += ask.points
  }
  const seconds = Math.ceil((asks.length * 60) / (limits.requestsPerMinute * 0.99))
  return { series, windows, requests: asks.length, credits, points, bytes: points * bytesPerPoint, seconds }
}

/** Returns notes for the user to read before requesting. */
function notesOf(wanted: readonly Wanted[], now: Instant): string[] {
  return [...futureNotes(wanted, now), ...priceNotes(wanted)]
}

function futureNotes(wanted: readonly Wanted[], now: Instant): string[] {
  const since = Math.min(...wanted.map((want) => want.since ?? historyStart))
  if (wanted.length === 0 || since <= now) return []
  return [`the selection begins on ${formatDate(since)}, which is in the future: nothing can be requested yet`]
}

function priceNotes(wanted: readonly Wanted[]): string[] {
  const supply = new Set(wanted.filter((w) => w.series.metric === 'supply/current_pit').map((w) => w.series.currency))
  if (supply.size !== 1) return []
  const [only] = supply
  const other = only === 'usd' ? 'native' : 'usd'
  return [`supply/current_pit is selected in ${only} only; price_usd also needs ${other} (--currencies native,usd)`]
}
