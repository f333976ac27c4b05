import { type Catalogue, type Endpoint, isOwn } from '../../catalog/catalogue.ts'
import { globTest } from '../../catalog/globs.ts'
import { matchPaths } from '../../catalog/series.ts'
import { usage } from '../../base/errors.ts'
import type { CoverageRow, Verified } from '../../lake/ledger/entry.ts'
import { isPlain } from '../../lake/ledger/coverage.ts'
import { loadCoverage, storedSeries, type StoredSeries, storedInterval } from '../../lake/ledger/index-queries.ts'
import { storedVerified } from '../../lake/ledger/run-queries.ts'
import { affordable, inTurns, spentDaily, type VerifyLimits } from '../../lake/ledger/verify-rounds.ts'
import type { Ledger } from '../../lake/ledger/ledger.ts'
import { type Ask, type Plan, priceOf, totalsOf } from './plan.ts'
import type { Settings } from '../../catalog/settings.ts'
import { ceil, count, day, type Instant, type Micros } from '../../base/time.ts'
import { intersect, minus, type Window } from '../../base/windows.ts'
import { blockedFor } from './unmapped.ts'
import { isCompared } from './verify-findings.ts'
import { refusals } from '../../lake/ledger/violations.ts'
import { formatCount, several } from '../../base/figures.ts'

/** The part of the stored data to request again; null for all. */
export interface VerifyScope {
  readonly paths: readonly string[] | null
  readonly assets: readonly string[] | null
  readonly since: Instant | null
  readonly until: Instant | null
}

/** The criteria by which windows are chosen. */
interface Choice extends VerifyLimits {
  readonly settings: Settings
  readonly catalogue: Catalogue
  readonly scope: VerifyScope
  /** Start of the round, microseconds; what it has requested since then is done. */
  readonly begun: Micros
  /** Partitions with a damaged file, where nothing can be compared. */
  readonly damaged: ReadonlySet<string>
}

/** A window that may be requested again. */
interface Candidate {
  readonly ask: Ask
  /**
   * Time since which at least half of it counts as requested again, whatever the result, microseconds; null for never.
   */
  readonly tried: Micros | null
  /** Whether the provider refuses it, or gave no usable answer the last time. */
  readonly refused: boolean
}

/** The requests of a verify. */
export interface ChosenWindows {
  readonly plan: Plan
  /** Number of windows in the lake, including those that this round has done. */
  readonly windows: number
  /** Requests of the plan whose refusal is on record. */
  readonly refused: ReadonlySet<Ask>
}

/** Share of a budget for windows whose last answer could not be used. */
const probeShare = 0.1
/** Number of days of which one allows a single such request above this share. */
const dearProbeDays = 10

/**
 * Chooses one window per series within the budget: those never requested again or longest ago first, and among equals
 * the endpoints in turn. Windows without a usable answer share a small part of the budget, so that they delay no
 * others.
 */
export function chooseWindows(ledger: Ledger, choice: Choice): ChosenWindows {
  const { settings, begun } = choice
  const { candidates, done, left } = candidatesOf(ledger, choice)
  const whole = candidates.reduce((sum, { ask }) => sum + ask.credits, 0)
  const budget = spentDaily(whole, choice)
  const inOrder = (some: readonly Candidate[]): Ask[] => rotation(some).map(({ ask }) => ask)
  const take = (some: readonly Ask[], limit: number | null): Ask[] =>
    affordable(some, ({ credits }) => credits, { budget: limit, stops: true })
  const refusedCandidates = candidates.filter((candidate) => candidate.refused)
  const probes = take(
    inOrder(refusedCandidates),
    budget === null ? null : probeBudget(refusedCandidates, budget, begun),
  )
  const spent = probes.reduce((sum, { credits }) => sum + credits, 0)
  const sound = take(inOrder(candidates.filter((candidate) => !candidate.refused)), budget && budget - spent)
  const asks = [...sound, ...probes]
  const windows = candidates.length + done
  const endpoints = new Set(candidates.map(({ ask }) => ask.endpoint.path)).size
  const series = new Set(asks.map((ask) => ask.series.id)).size
  const totals = totalsOf(series, asks.length, asks, settings.metrics)
  const before = done === 0 ? '' : `, ${formatCount(done)} done before the last run ended`
  const limit = budget === null ? 'no limit (--all)' : `a budget of ${formatCount(budget)} credits`
  const waiting = refusedCandidates.length - probes.length
  const notes = [
    `requests ${formatCount(asks.length)} of ${several(windows, 'window')} of ${several(endpoints, 'endpoint')} ` +
      `again, with ${limit}${before}`,
    ...(waiting > 0 ? [`${formatCount(waiting)} windows without a usable answer are left for a later run`] : []),
    ...[...left].map(([why, seriesCount]) => `${formatCount(seriesCount)} series are left out: ${why}`),
  ]
  return { plan: { asks, blocked: [], totals, notes }, windows, refused: new Set(probes) }
}

/**
 * Returns the maximum credits for windows without a usable answer. If not even one of them fits into their share of the
 * budget, they get the whole budget on one day in ten.
 */
function probeBudget(refusedCandidates: readonly Candidate[], budget: number, begun: Micros): number {
  const cheapest = Math.min(...refusedCandidates.map(({ ask }) => ask.credits))
  const mayBeDear = Math.floor(begun / (day * 1_000_000)) % dearProbeDays === 0
  return cheapest > probeShare * budget && mayBeDear ? budget : probeShare * budget
}

function candidatesOf(ledger: Ledger, choice: Choice) {
  const { catalogue, settings, scope, damaged, begun } = choice
  const paths = scope.paths === null ? null : matchPaths(catalogue, scope.paths).map(({ path }) => path)
  const assets = scope.assets?.map(globTest) ?? null
  const coverage = loadCoverage(ledger)
  const verified = storedVerified(ledger)
  const { standing, acknowledged } = refusedSeries(ledger)
  const provider = ledger.head().provider
  const candidates: Candidate[] = []
  const pointsLeft = new Map<string, number>()
  let done = 0
  let some = false
  for (const series of storedSeries(ledger).values()) {
    if (paths?.includes(series.metric) === false || assets?.some((test) => test(series.asset)) === false) continue
    const catalogued = catalogue.endpoints.get(series.metric)
    // User data are not requested: an import compares their files.
    if (catalogued && isOwn(catalogued)) continue
    const windows = windowsOf(ledger, series, coverage.get(series.id) ?? [], choice)
    if (windows.length === 0) continue
    some = true
    const endpoint = catalogue.endpoints.get(series.metric)
    const why =
      endpoint === undefined
        ? 'the catalogue no longer has their endpoint'
        : endpoint.overlap === 'off'
          ? 'the values of their endpoint cannot be compared (overlap: off)'
          : damaged.has(partitionOf(series))
            ? 'a file of theirs is damaged'
            : acknowledged.has(series.id)
              ? 'the provider refuses them, and that was acknowledged'
              : blockedFor(settings, catalogue, provider, series, endpoint)
    if (why !== null || endpoint === undefined) {
      pointsLeft.set(why ?? '', (pointsLeft.get(why ?? '') ?? 0) + 1)
      continue
    }
    const before = verified.get(series.id) ?? []
    for (const window of windows) {
      const rest = minus(
        [window],
        before.filter(({ at }) => at >= begun),
      )
      if (rest.length === 0) done++
      else {
        const tried = triedAt(window, before)
        const compared = triedAt(window, before.filter(isCompared))
        const isRefused = standing.has(series.id) || compared !== tried
        candidates.push({ ask: askOf(series, endpoint, hullOf(rest), choice), tried, refused: isRefused })
      }
    }
  }
  if (!some && (scope.paths !== null || scope.assets !== null)) throw nothingHeld(scope)
  return { candidates, done, left: pointsLeft }
}

/** Returns the series with points that are refused now (`standing`), and those of them that a person acknowledged. */
function refusedSeries(ledger: Ledger): Readonly<Record<'standing' | 'acknowledged', ReadonlySet<string>>> {
  const all = refusals(ledger).map(({ listed }) => listed)
  return {
    standing: new Set(all.map(({ series }) => series)),
    acknowledged: new Set(all.filter(({ acknowledged_at }) => acknowledged_at !== null).map(({ series }) => series)),
  }
}

function nothingHeld({ paths, assets }: VerifyScope): Error {
  return usage('nothing to verify', {
    expected: 'points that the lake holds',
    got: `none for ${[...(paths ?? []), ...(assets ?? [])].join(', ')}`,
    next: 'see `pitlake status`, or fetch them first',
  })
}

/** Returns the partition in which a series is stored. */
export const partitionOf = (series: StoredSeries): string => `${series.metric} ${storedInterval(series)}`

/** Returns the stored history of a series as one window, because a long request costs as much as a short one. */
function windowsOf(
  ledger: Ledger,
  series: StoredSeries,
  rows: readonly CoverageRow[],
  { catalogue, settings, scope }: Choice,
): Window[] {
  const endpoint = catalogue.endpoints.get(series.metric)
  const plain = rows.filter(isPlain)
  if (plain.length === 0 || series.points <= 0) return []
  if (endpoint?.overlap === 'fixed_range') return plain.filter((row) => wasAskedAlone(ledger, row))
  const grid = (at: Instant) => ceil(at, storedInterval(series), settings.metrics.weekStart)
  const wanted = {
    since: Math.max(scope.since === null ? Number.NEGATIVE_INFINITY : grid(scope.since), series.first_t ?? 0),
    until: scope.until === null ? Infinity : grid(scope.until),
  }
  const coveredWindows = intersect(plain, [wanted])
  return coveredWindows.length === 0 ? [] : [hullOf(coveredWindows)]
}

/**
 * Whether a row was requested with exactly its range; if values depend on the range, only such an answer can be
 * compared.
 */
function wasAskedAlone(ledger: Ledger, row: CoverageRow): boolean {
  const request = ledger.statement('SELECT since, until FROM requests WHERE id = ?').get(row.request)
  return request !== undefined && request['since'] === row.since && request['until'] === row.until
}

function hullOf(windows: readonly Window[]): Window {
  return {
    since: Math.min(...windows.map(({ since }) => since)),
    until: Math.max(...windows.map(({ until }) => until)),
  }
}

function askOf(series: StoredSeries, endpoint: Endpoint, settles: Window, { settings }: Choice): Ask {
  const { id, metric, asset, interval, currency, exchange, network, params } = series
  const stored = storedInterval(series)
  const prices = settings.metrics.credits
  return {
    series: { id, metric, asset, interval, currency, exchange, network, params },
    endpoint,
    interval: stored,
    window: endpoint.since || endpoint.until ? settles : null,
    settles,
    points: count(settles.since, settles.until, stored),
    credits: priceOf(prices, asset),
  }
}

/** Returns the time since which at least half of the window was requested again; null if it was not. */
function triedAt(window: Window, rows: readonly Verified[]): Micros | null {
  const half = (window.until - window.since) / 2
  let rest = [window]
  for (const row of rows.toReversed()) {
    rest = minus(rest, [row])
    if (rest.reduce((sum, { since, until }) => sum + until - since, 0) <= half) return row.at
  }
  return null
}

/**
 * Orders candidates: those never requested or longest ago first, so that each is reached within one round; among
 * equals, one of every endpoint in turn.
 */
function rotation(candidates: readonly Candidate[]): Candidate[] {
  const age = ({ tried }: Candidate): number => tried ?? Number.NEGATIVE_INFINITY
  const queues = [...Map.groupBy(candidates, ({ ask }) => ask.endpoint.path).values()]
  const inTurn = [...inTurns(queues)].flat()
  return inTurn.toSorted((a, b) => (age(a) === age(b) ? 0 : age(a) - age(b)))
}
