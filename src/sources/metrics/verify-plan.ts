import { type Catalogue, type Endpoint, isOwn } from '../../catalog/catalogue.ts'
import { globTest } from '../../catalog/globs.ts'
import { matchPaths } from '../../catalog/series.ts'
import { usage } from '../../base/errors.ts'
import type { CoverageRow, Verified } from '../../lake/ledger/entry.ts'
import { isPlain } from '../../lake/ledger/coverage.ts'
import { heldCoverage, heldSeries, type HeldSeries, storedInterval } from '../../lake/ledger/held.ts'
import { heldVerified } from '../../lake/ledger/held-runs.ts'
import { affordable, inTurns } from '../../lake/ledger/verifying.ts'
import type { Ledger } from '../../lake/ledger/ledger.ts'
import { type Ask, priceOf, totalsOf } from './plan.ts'
import type { Settings } from '../../catalog/settings.ts'
import { ceil, count, type Instant, type Micros } from '../../base/time.ts'
import { intersect, minus, type Window } from '../../base/windows.ts'
import { blockedFor } from './prepare.ts'
import { whole } from '../../base/figures.ts'

/** Which part of what the lake holds is to be asked again. */
interface VerifyScope {
  readonly paths: readonly string[] | null
  readonly assets: readonly string[] | null
  readonly since: Instant | null
  readonly until: Instant | null
}

/** What windows are chosen by. */
interface Choice {
  readonly settings: Settings
  readonly catalogue: Catalogue
  readonly scope: VerifyScope
  /** The most credits they may cost; null: everything. */
  readonly budget: number | null
  /** What was asked again since then by this round is done. */
  readonly begun: Micros
  /** Partitions of which a file is damaged: nothing can be compared there. */
  readonly damaged: ReadonlySet<string>
}

interface Candidate {
  readonly ask: Ask
  /** Since when at least half of it counts as asked again; null: never. */
  readonly verified: Micros | null
}

/** One window a series, never verified or longest ago first, one endpoint after the other, within the budget. */
export function chooseWindows(ledger: Ledger, choice: Choice) {
  const { settings, budget } = choice
  const { candidates, done, left } = candidatesOf(ledger, choice)
  const inOrder = Iterator.from(spread(candidates)).map(({ ask }) => ask)
  const asks = affordable(inOrder, ({ credits }) => credits, { budget, stops: true })
  const windows = candidates.length + done
  const endpoints = new Set(candidates.map(({ ask }) => ask.endpoint.path)).size
  const series = new Set(asks.map((ask) => ask.series.id)).size
  const totals = totalsOf(series, asks.length, asks, settings.metrics)
  const before = done === 0 ? '' : `, ${whole(done)} done before the last run ended`
  const limit = budget === null ? 'no budget (--all)' : `a budget of ${whole(budget)} credits`
  const notes = [
    `asks ${whole(asks.length)} of ${whole(windows)} windows of ${endpoints} endpoints again within ${limit}${before}`,
    ...[...left].map(([why, own]) => `${whole(own)} series are left out: ${why}`),
  ]
  return { plan: { asks, blocked: [], totals, notes }, windows }
}

function candidatesOf(ledger: Ledger, choice: Choice) {
  const { catalogue, settings, scope, damaged, begun } = choice
  const paths = scope.paths === null ? null : matchPaths(catalogue, scope.paths).map(({ path }) => path)
  const assets = scope.assets?.map(globTest) ?? null
  const coverage = heldCoverage(ledger)
  const verified = heldVerified(ledger)
  const provider = ledger.head().provider
  const candidates: Candidate[] = []
  const left = new Map<string, number>()
  let done = 0
  let some = false
  for (const series of heldSeries(ledger).values()) {
    if (paths?.includes(series.metric) === false || assets?.some((test) => test(series.asset)) === false) continue
    const own = catalogue.endpoints.get(series.metric)
    // Nobody is asked for own data: their files are compared by an import.
    if (own && isOwn(own)) continue
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
            : blockedFor(settings, catalogue, provider, series, endpoint)
    if (why !== null || endpoint === undefined) {
      left.set(why ?? '', (left.get(why ?? '') ?? 0) + 1)
      continue
    }
    const before = verified.get(series.id) ?? []
    for (const window of windows) {
      const rest = minus(
        [window],
        before.filter(({ at }) => at >= begun),
      )
      if (rest.length === 0) done++
      else candidates.push({ ask: askOf(series, endpoint, hullOf(rest), choice), verified: verifiedAt(window, before) })
    }
  }
  if (!some && (scope.paths !== null || scope.assets !== null)) throw nothingHeld(scope)
  return { candidates, done, left }
}

function nothingHeld({ paths, assets }: VerifyScope): Error {
  return usage('nothing to verify', {
    expected: 'points that the lake holds',
    got: `none for ${[...(paths ?? []), ...(assets ?? [])].join(', ')}`,
    next: 'see `pitlake status`, or fetch them first',
  })
}

/** The partition of a series as its files are stored. */
export const partitionOf = (series: HeldSeries): string => `${series.metric} ${storedInterval(series)}`

/** What is held of a series as one window, because a long one costs as much as a short one. */
function windowsOf(
  ledger: Ledger,
  series: HeldSeries,
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
  const held = intersect(plain, [wanted])
  return held.length === 0 ? [] : [hullOf(held)]
}

/** Where values depend on the asked range, only an answer to the very same range can be compared. */
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

function askOf(series: HeldSeries, endpoint: Endpoint, settles: Window, { settings }: Choice): Ask {
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

/** The instant since which at least half of the window was asked again. */
function verifiedAt(window: Window, rows: readonly Verified[]): Micros | null {
  const half = (window.until - window.since) / 2
  let rest = [window]
  for (const row of rows.toReversed()) {
    rest = minus(rest, [row])
    if (rest.reduce((sum, { since, until }) => sum + until - since, 0) <= half) return row.at
  }
  return null
}

/** Takes the most urgent of every endpoint in turn. */
function spread(candidates: readonly Candidate[]): Iterable<Candidate> {
  const urgency = ({ verified }: Candidate) => verified ?? Number.NEGATIVE_INFINITY
  const sorted = (some: readonly Candidate[]) => some.toSorted((a, b) => Math.sign(urgency(a) - urgency(b)) || 0)
  const queues = [...Map.groupBy(sorted(candidates), ({ ask }) => ask.endpoint.path).values()]
  return inTurns(queues).flatMap(sorted)
}
