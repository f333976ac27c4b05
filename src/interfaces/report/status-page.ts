import { z } from 'zod'
import { availableAt, type Rule, ruleFor } from '../../catalog/availability.ts'
import { readableSeries } from '../../catalog/series.ts'
import {
  type StoredVersion,
  loadCoverage,
  storedSeries,
  storedStamps,
  storedVersions,
  storedWeekStart,
} from '../../lake/ledger/index-queries.ts'
import { storedRuns } from '../../lake/ledger/run-queries.ts'
import type { Ledger } from '../../lake/ledger/ledger.ts'
import { listViolations } from '../../lake/ledger/violations.ts'
import type { CoverageRow, Stamp } from '../../lake/ledger/entry.ts'
import { several } from '../../base/figures.ts'
import { storedArrivals, type StoredArrivals } from '../../trust/availability-audit.ts'
import {
  count,
  end,
  floor,
  type Instant,
  type Interval,
  monthIndex,
  step,
  unshownInterval,
  type Weekday,
} from '../../base/time.ts'
import type { SeriesStanding } from './freshness.ts'
import { isOpenFinding, type ListedFinding } from '../../sources/registry/verify.ts'
import { universeSteps, type UniverseStep } from '../../sources/registry/status.ts'
import { type FreshnessCounts, type RunFact, countFresh, runFact, type StatusInput } from './facts.ts'
import type { JudgedStanding, LakeStanding } from './status.ts'
import type { Window } from '../../base/windows.ts'

const stampVerdict = z.union([
  z.object({ kind: z.literal('lookahead'), verdict: z.enum(['proved', 'not proved']) }),
  z.object({ kind: z.literal('stress'), verdict: z.enum(['holds', 'falls', 'leak', 'undecided']) }),
])
const shownViolations = 200
const shownRuns = 12
const shownStamps = 40
const shownVersions = 400

/** Verdict of a stamped result. Derived from the shape that reads its note. */
type StampVerdict = z.infer<typeof stampVerdict>

/** A row of the page for one endpoint. Arrays have an entry a month, from the first month of the page on. */
export interface EndpointFacts {
  readonly metric: string
  /** Number of series with points. */
  readonly series: number
  /** Intervals that are expected, that are stored, and in failed windows. */
  readonly due: readonly number[]
  readonly held: readonly number[]
  readonly failed: readonly number[]
  readonly fresh: Omit<FreshnessCounts, 'overdue_seconds'>
  /** Seconds for which the most overdue point has been due without being requested. */
  readonly overdue: number
  /** Newest stored `t`; null if it is not known. */
  readonly newest: Instant | null
  /** EndpointLag of its arrivals; null if no arrival is known. */
  readonly lag: EndpointLag | null
}

/** Endpoint that was requested and of which nothing is stored. */
export interface SilentEndpoint extends Pick<CoverageRow, 'state' | 'reason'> {
  readonly metric: string
}

/** A bar of the histogram of lags, each divided by the lag of its rule. */
export interface LagBin {
  /** Ratio at which the bar begins, exclusive. */
  readonly from: number
  /** Ratio at which it ends, inclusive. */
  readonly to: number
  readonly points: number
}

/** A stored value or record that the provider contradicts. */
export interface ViolationFact {
  /** Path, or `registry` and the resource; for an incident the number of endpoints. */
  readonly metric: string
  /** Asset and dimensions, or the record; for an incident the number of points. */
  readonly series: string
  /** Null for a record, and for an incident. */
  readonly t: number | null
  readonly interval: string | null
  readonly kind: string
  readonly stored: string | null
  readonly offered: string | null
  /** Reason of the acknowledgement; null if there is none. */
  readonly acknowledged: string | null
  /** Whether the provider has reverted it. */
  readonly reverted: boolean
  /** Time when it was found, Unix seconds. */
  readonly offeredAt: number
}

/** A stamped result. */
export interface StampFact {
  readonly id: string
  readonly version: number
  /** Unix seconds. */
  readonly at: number
  /** Name of its file. */
  readonly file: string
  /** Null if its note does not state it. */
  readonly rows: number | null
  /** Null if its note states none. */
  readonly verdict: StampVerdict | null
}

/** Content of the status page. */
export interface StatusPage {
  /** Unix seconds. */
  readonly madeAt: number
  /** Name and version of this program. */
  readonly program: string
  readonly standing: LakeStanding
  /** Months since 1970-01 of the first column. */
  readonly firstMonth: number
  /** Number of columns. */
  readonly months: number
  readonly endpoints: readonly EndpointFacts[]
  readonly silent: readonly SilentEndpoint[]
  readonly lagBins: readonly LagBin[]
  /** Whether the data files could be read; if not, arrivals and universe are empty. */
  readonly readable: boolean
  readonly universe: readonly UniverseStep[]
  /** Newest first. */
  readonly violations: readonly ViolationFact[]
  /** Newest first. */
  readonly runs: readonly RunFact[]
  /** Oldest first. */
  readonly versions: readonly Pick<StoredVersion, 'version' | 'committed_at' | 'job' | 'points_added' | 'files_added'>[]
  /** Newest first. */
  readonly stamps: readonly StampFact[]
  /** Address of the folder of their notes as seen from the page; null if nothing there can be opened. */
  readonly stampsAt: string | null
}

/** Reads everything that the status page shows, from the ledger and the live files. */
export async function readStatusPage(
  ledger: Ledger,
  input: StatusInput,
  { standing, series, arrivals, findings }: JudgedStanding,
  program: string,
  stampsAt: string | null = null,
): Promise<StatusPage> {
  const { now } = input
  const starts = series.flatMap((standing) => (standing.due === null ? [] : [standing.due.since]))
  const firstMonth = starts.length === 0 ? monthIndex(now) : monthIndex(starts.reduce((a, b) => Math.min(a, b)))
  const months = Math.max(1, monthIndex(now) - firstMonth + 1)
  const { lags, bins, universe, readable } = await readFiles(ledger, input, arrivals)
  return {
    madeAt: now,
    program,
    standing,
    firstMonth,
    months,
    endpoints: endpointRows(series, {
      firstMonth,
      months,
      weekStart: storedWeekStart(ledger),
      lags,
      order: [...input.catalogue.endpoints.keys()],
    }),
    silent: silentOf(ledger, series),
    lagBins: bins,
    readable,
    universe,
    violations: violationsOf(ledger, findings ?? []),
    runs: storedRuns(ledger, shownRuns).map(runFact),
    versions: storedVersions(ledger)
      .slice(-shownVersions)
      .map(({ version, committed_at, job, points_added, files_added }) => {
        return { version, committed_at, job, points_added, files_added }
      }),
    stamps: storedStamps(ledger).slice(-shownStamps).toReversed().map(stampFact),
    stampsAt,
  }
}

/** Facts that are read from the data files. */
interface FileFacts extends LagFacts {
  readonly universe: readonly UniverseStep[]
  /** Whether the files could be read. */
  readonly readable: boolean
}

/** Lags of arrivals. */
interface LagFacts {
  /** Lags by path. */
  readonly lags: ReadonlyMap<string, EndpointLag>
  readonly bins: readonly LagBin[]
}

/** Reads what only the files show. A damaged one takes these pictures away, not the page that has to say so. */
async function readFiles(
  ledger: Ledger,
  input: StatusInput,
  held: readonly StoredArrivals[] | null,
): Promise<FileFacts> {
  try {
    const arrivals = held ?? (await storedArrivals(ledger, input.catalogue, () => true))
    return { ...lagsOf(arrivals, input.now), universe: await universeSteps(ledger), readable: true }
  } catch {
    return { ...lagsOf([], input.now), universe: [], readable: false }
  }
}

interface Frame {
  readonly firstMonth: number
  readonly months: number
  readonly weekStart: Weekday
  readonly lags: ReadonlyMap<string, EndpointLag>
  /** The catalogue's order of endpoints. */
  readonly order: readonly string[]
}

function endpointRows(series: readonly SeriesStanding[], frame: Frame): EndpointFacts[] {
  const judged = series.filter(({ due }) => due !== null)
  const place = new Map(frame.order.map((metric, index) => [metric, index]))
  return [...Map.groupBy(judged, ({ metric }) => metric)]
    .map(([metric, standingsOfMetric]) => endpointRow(metric, standingsOfMetric, frame))
    .toSorted(
      (a, b) => (place.get(a.metric) ?? Infinity) - (place.get(b.metric) ?? Infinity) || (a.metric < b.metric ? -1 : 1),
    )
}

/** Counts by month, from the first one on: intervals due, stored, and in failed windows; with freshness and lag. */
function endpointRow(metric: string, standings: readonly SeriesStanding[], frame: Frame): EndpointFacts {
  const { overdue_seconds: overdue, ...fresh } = countFresh(standings)
  const byMonth = { due: zeros(frame.months), held: zeros(frame.months), failed: zeros(frame.months) }
  for (const { due, held, failed, interval } of standings) {
    addByMonth(byMonth.due, due === null ? [] : [due], interval, frame)
    addByMonth(byMonth.held, held, interval, frame)
    addByMonth(byMonth.failed, failed, interval, frame)
  }
  const newest = standings.reduce<Instant | null>(
    (last, standing) => Math.max(last ?? -Infinity, standing.newest ?? -Infinity),
    null,
  )
  const lag = frame.lags.get(metric) ?? null
  return { metric, series: standings.length, ...byMonth, fresh, overdue, newest, lag }
}

/** Adds the intervals of the windows to the months in which they start; months count from `firstMonth`. */
function addByMonth(
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

const zeros = (length: number): number[] => Array.from({ length }, () => 0)

/** Lists endpoints that were requested and of which nothing is stored. */
function silentOf(ledger: Ledger, series: readonly SeriesStanding[]): SilentEndpoint[] {
  const heard = new Set(series.filter((standing) => standing.due !== null).map((standing) => standing.metric))
  const coverage = loadCoverage(ledger)
  const silent = new Map<string, SilentEndpoint>()
  for (const [id, { metric }] of storedSeries(ledger)) {
    if (heard.has(metric) || silent.has(metric)) continue
    const [first] = coverage.get(id) ?? []
    if (first) silent.set(metric, { metric, state: first.state, reason: first.reason })
  }
  return [...silent.values()]
}

const nowhere = { t: null as number | null, interval: null as string | null }

/**
 * Lists stored values that the provider contradicts, and records of the registry, which have no t nor interval: the
 * newest first. `acknowledged` is the reason that was given. A violation that later answers no longer show, or that a
 * later state of the record has resolved, is past.
 */
function violationsOf(ledger: Ledger, findings: readonly ListedFinding[]): ViolationFact[] {
  const values = listViolations(ledger, { paths: null, assets: null })
    .filter(({ kind }) => kind !== 'refused')
    .slice(-shownViolations)
    .map((v) => {
      const { metric, interval, asset, currency, exchange, network } = readableSeries(v.series)
      const about = { kind: v.kind, stored: v.stored, offered: v.offered, acknowledged: v.why }
      const when = { reverted: v.reverted_at !== null, offeredAt: v.found_at / 1_000_000 }
      if (v.incident !== null) {
        const { endpoints, points } = v.incident
        const many = { metric: several(endpoints.length, 'endpoint'), series: several(points, 'point') }
        return { ...many, ...nowhere, ...about, ...when }
      }
      const series = [asset, currency, exchange, network].filter((part) => part !== null).join(' ')
      return { metric, series, t: v.t, interval: interval ?? unshownInterval, ...about, ...when }
    })
  const records = findings
    .filter((finding) => isOpenFinding(finding) || finding.acknowledged_at !== null)
    .map(({ resource, record, kind, held, offered, why, found_at }) => ({
      metric: `registry ${resource}`,
      series: record,
      ...nowhere,
      kind,
      stored: held,
      offered,
      acknowledged: why,
      reverted: false,
      offeredAt: found_at / 1_000_000,
    }))
  return [...records, ...values]
    .toSorted((a, b) => a.offeredAt - b.offeredAt)
    .slice(-shownViolations)
    .toReversed()
}

/** Reads the facts of a stamp from its note. */
function stampFact({ id, version, at, path, detail }: Stamp): StampFact {
  const { rows, verdict } = z
    .object({ rows: z.number().nullable().catch(null), verdict: stampVerdict.nullable().catch(null) })
    .parse(detail)
  return { id, version, at: at / 1_000_000, file: path ?? id, rows, verdict }
}

/** Publication lag of the points whose arrival is known, in seconds after the end of their interval. */
export interface EndpointLag {
  readonly points: number
  readonly p05: number
  readonly p50: number
  readonly p95: number
  readonly p99: number
  readonly max: number
  /** The lag that the rule allows, in seconds; null where the catalogue has no rule for it. */
  readonly rule: number | null
  readonly basis: string
  /** Number of points that came later than by the rule. */
  readonly late: number
}

/** Measures the lags of endpoints; one stored in several intervals shows the one with most known arrivals. */
function lagsOf(storedArrivals: readonly StoredArrivals[], now: Instant): LagFacts {
  const lags = new Map<string, EndpointLag>()
  const bars = new Map<number, number>()
  for (const { endpoint, interval, rules, arrivals } of storedArrivals) {
    const { p05, p50, p95, p99, max, late } = arrivals
    for (const { bar, points } of arrivals.bars) bars.set(bar, (bars.get(bar) ?? 0) + points)
    const points = arrivals.computed + arrivals.seenLate - arrivals.backfilled
    if (points === 0 || points < (lags.get(endpoint.path)?.points ?? 0)) continue
    const rule = ruleFor(rules, now)
    const knownLags = { p05: p05 ?? 0, p50: p50 ?? 0, p95: p95 ?? 0, p99: p99 ?? 0, max: max ?? 0 }
    lags.set(endpoint.path, { points, ...knownLags, rule: lagOf(rule, interval, now), basis: rule.basis, late })
  }
  const bins = [...bars].toSorted(([left], [other]) => left - other)
  // Each bar counts lags divided by the rule's, from one ratio to the next on a logarithmic scale.
  return { lags, bins: bins.map(([bar, points]) => ({ from: 10 ** (bar / 12), to: 10 ** ((bar + 1) / 12), points })) }
}

/** Converts the rule to seconds after the end of an interval; a clock time counts from the interval's own length. */
function lagOf(rule: Rule, interval: Interval, now: Instant): number {
  const start = floor(now, '24h')
  return availableAt([{ ...rule, until: null }], start, interval) - end(start, interval)
}
