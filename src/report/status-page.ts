import type { Rule } from '../catalog/availability.ts'
import { ruleFor } from '../catalog/availability.ts'
import { parseSeriesId } from '../catalog/series.ts'
import { Engine } from '../store/engine.ts'
import { heldCoverage, heldSeries, heldVersions, heldViolations, liveFiles } from '../ledger/held.ts'
import { heldRuns } from '../ledger/held-runs.ts'
import type { Ledger } from '../ledger/ledger.ts'
import { sharesOf } from '../points/files.ts'
import { readPoints } from '../views/relations.ts'
import { ruledSql } from '../points/stored-clocks.ts'
import type { EndpointFacts, FreshCounts, Lag, LagBin, Page, Silent, ViolationFact } from './page/facts.ts'
import { endSql, micros } from '../intervals-sql.ts'
import { day, end, type Instant, type Interval, minute, monthIndex } from '../time.ts'
import { addByMonth, type SeriesStanding } from './freshness.ts'
import { universeSteps, type UniverseStep } from '../registry/facts.ts'
import { type Judged, runFact, type StatusInput } from './status.ts'

const shownViolations = 200
const shownRuns = 12
const shownVersions = 400

/** Everything that the status page shows, from the ledger and the live files. */
export async function readPage(
  ledger: Ledger,
  input: StatusInput,
  { standing, series }: Judged,
  program: string,
): Promise<Page> {
  const { now } = input
  const starts = series.flatMap((one) => (one.due === null ? [] : [one.due.since]))
  const firstMonth = starts.length === 0 ? monthIndex(now) : monthIndex(starts.reduce((a, b) => Math.min(a, b)))
  const months = Math.max(1, monthIndex(now) - firstMonth + 1)
  const { lags, bins, universe, readable } = await readFiles(ledger, input)
  return {
    madeAt: now,
    program,
    standing,
    firstMonth,
    months,
    endpoints: endpointRows(series, { firstMonth, months, lags, order: [...input.catalogue.endpoints.keys()] }),
    silent: silentOf(ledger, series),
    lagBins: bins,
    readable,
    universe,
    violations: violationsOf(ledger),
    runs: heldRuns(ledger, shownRuns).map(runFact),
    versions: heldVersions(ledger)
      .slice(-shownVersions)
      .map((v) => ({
        version: v.version,
        at: v.committed_at / 1_000_000,
        job: v.job,
        points: v.points_added,
        files: v.files_added,
      })),
  }
}

interface FromFiles {
  readonly lags: Map<string, Lag>
  readonly bins: LagBin[]
  readonly universe: UniverseStep[]
  readonly readable: boolean
}

/** What only the files tell. A damaged one takes these pictures away, not the page that has to say so. */
async function readFiles(ledger: Ledger, input: StatusInput): Promise<FromFiles> {
  try {
    return { ...(await readLags(ledger, input)), universe: await universeSteps(ledger), readable: true }
  } catch {
    return { lags: new Map(), bins: [], universe: [], readable: false }
  }
}

interface Frame {
  readonly firstMonth: number
  readonly months: number
  readonly lags: ReadonlyMap<string, Lag>
  /** The catalogue's order of endpoints. */
  readonly order: readonly string[]
}

function endpointRows(series: readonly SeriesStanding[], frame: Frame): EndpointFacts[] {
  const byMetric = new Map<string, SeriesStanding[]>()
  for (const one of series) {
    if (one.due === null) continue
    const list = byMetric.get(one.metric)
    if (list) list.push(one)
    else byMetric.set(one.metric, [one])
  }
  const place = new Map(frame.order.map((metric, index) => [metric, index]))
  return [...byMetric]
    .map(([metric, own]) => endpointRow(metric, own, frame))
    .toSorted(
      (a, b) => (place.get(a.metric) ?? Infinity) - (place.get(b.metric) ?? Infinity) || (a.metric < b.metric ? -1 : 1),
    )
}

function endpointRow(metric: string, own: readonly SeriesStanding[], frame: Frame): EndpointFacts {
  const fresh: Record<keyof FreshCounts, number> = { fresh: 0, awaited: 0, behind: 0, stopped: 0 }
  const byMonth = { due: zeros(frame.months), held: zeros(frame.months), failed: zeros(frame.months) }
  let points = 0
  let newest: Instant | null = null
  let overdue = 0
  for (const one of own) {
    points += one.points
    overdue = Math.max(overdue, one.overdue)
    if (one.newest !== null) newest = Math.max(newest ?? one.newest, one.newest)
    if (one.fresh !== null) fresh[one.fresh]++
    if (one.due === null) continue
    addByMonth(byMonth.due, frame.firstMonth, [one.due], one.interval)
    addByMonth(byMonth.held, frame.firstMonth, one.held, one.interval)
    addByMonth(byMonth.failed, frame.firstMonth, one.failed, one.interval)
  }
  const lag = frame.lags.get(metric) ?? null
  return { metric, series: own.length, points, ...byMonth, fresh, overdue, newest, lag }
}

function zeros(length: number): number[] {
  return Array.from({ length }, () => 0)
}

/** Endpoints that were asked and of which nothing is stored. */
function silentOf(ledger: Ledger, series: readonly SeriesStanding[]): Silent[] {
  const heard = new Set(series.filter((one) => one.due !== null).map((one) => one.metric))
  const coverage = heldCoverage(ledger)
  const silent = new Map<string, Silent>()
  for (const [id, { metric }] of heldSeries(ledger)) {
    if (heard.has(metric) || silent.has(metric)) continue
    const [first] = coverage.get(id) ?? []
    if (first) silent.set(metric, { metric, state: first.state, reason: first.reason })
  }
  return [...silent.values()]
}

function violationsOf(ledger: Ledger): ViolationFact[] {
  return heldViolations(ledger)
    .slice(-shownViolations)
    .toReversed()
    .map((v) => {
      const series = parseSeriesId(v.series)
      const rest =
        series && [series.asset, series.currency, series.exchange, series.network].filter((part) => part !== null)
      return {
        metric: series?.metric ?? v.series,
        series: rest?.join(' ') ?? '',
        t: v.t,
        interval: series?.interval ?? '24h',
        kind: v.kind,
        stored: v.stored,
        offered: v.offered,
        storedAt: v.stored_at === null ? null : v.stored_at / 1_000_000,
        accepted: v.why,
        offeredAt: v.offered_at / 1_000_000,
      }
    })
}

/** One partition as DuckDB answers it. */
interface LagRow {
  readonly metric: string
  readonly interval: Interval
  readonly lag: Omit<Lag, 'rule' | 'basis'>
}

async function readLags(ledger: Ledger, input: StatusInput): Promise<{ lags: Map<string, Lag>; bins: LagBin[] }> {
  const files = liveFiles(ledger, { table: 'points' })
  if (files.length === 0) return { lags: new Map(), bins: [] }
  const engine = await Engine.open()
  try {
    const rules = rulesOf(files.flatMap(sharesOf), input)
    await engine.run('CREATE TEMP TABLE rule (metric VARCHAR, interval VARCHAR, seconds DOUBLE)')
    for (const [key, { metric, interval, seconds }] of rules)
      if (key !== '') await engine.run('INSERT INTO rule VALUES ($1, $2, $3)', [metric, interval, seconds])
    await engine.run(`CREATE TEMP VIEW arrival AS ${arrivalSql(readPoints(ledger.root, files))}`)
    const rows = (await engine.rows(lagSql)).map(lagRow)
    const bins = await engine.rows(binSql)
    return {
      lags: busiest(rows, rules),
      bins: bins.map((row) => ({ from: Number(row['lower']), to: Number(row['upper']), points: Number(row['n']) })),
    }
  } finally {
    engine.close()
  }
}

interface RuleLag {
  readonly metric: string
  readonly interval: Interval
  readonly seconds: number
  readonly basis: Rule['basis']
}

function rulesOf(shares: readonly { metric: string; interval: Interval }[], input: StatusInput): Map<string, RuleLag> {
  const rules = new Map<string, RuleLag>()
  for (const { metric, interval } of shares) {
    const endpoint = input.catalogue.endpoints.get(metric)
    if (!endpoint) continue
    const rule = ruleFor(endpoint.rules[interval], input.now)
    rules.set(`${metric} ${interval}`, {
      metric,
      interval,
      seconds: lagOf(rule, interval, input.now),
      basis: rule.basis,
    })
  }
  return rules
}

/** The rule as seconds after the end of an interval; a clock time counts from the interval's own length. */
function lagOf(rule: Rule, interval: Interval, now: Instant): number {
  if (rule.kind === 'lag') return rule.seconds
  const start = Math.floor(now / day) * day
  return Math.max(0, rule.days * day + rule.minuteOfDay * minute - (end(start, interval) - start))
}

/** Points whose arrival somebody saw: the provider's own clock, or this lake's. Backfilled ones say nothing of the lag. */
function arrivalSql(points: string): string {
  return `SELECT p.metric, p.interval, (epoch_us(available_at) - ${endSql('epoch_us(t)', 'p.interval', micros)}) / 1e6 AS lag, seconds AS rule
    FROM ${points} p
    LEFT JOIN rule ON rule.metric = p.metric AND rule.interval = p.interval
    WHERE basis IN ('provider', 'observed') AND ${ruledSql()} >= available_at`
}

const lagSql = `SELECT metric, interval, count(*)::DOUBLE AS points, quantile_cont(lag, [0.05, 0.5, 0.95, 0.99]) AS q,
  max(lag) AS most, (count(*) FILTER (WHERE lag > rule))::DOUBLE AS late FROM arrival GROUP BY ALL`

/** Twelve bars a decade, from a thousandth of the rule's lag to a thousand times it. */
const binSql = `SELECT pow(10, bin / 12) AS lower, pow(10, (bin + 1) / 12) AS upper, count(*)::DOUBLE AS n
  FROM (SELECT floor(12 * log10(greatest(0.001, least(1000, lag / rule)))) AS bin FROM arrival WHERE rule > 0)
  GROUP BY bin ORDER BY bin`

function lagRow(row: Readonly<Record<string, unknown>>): LagRow {
  const [p05 = 0, p50 = 0, p95 = 0, p99 = 0] = (row['q'] as readonly number[]).map(Number)
  const lag = { points: Number(row['points']), p05, p50, p95, p99, max: Number(row['most']), late: Number(row['late']) }
  return { metric: String(row['metric']), interval: String(row['interval']) as Interval, lag }
}

/** An endpoint stored in several intervals shows the one with the most points. */
function busiest(rows: readonly LagRow[], rules: ReadonlyMap<string, RuleLag>): Map<string, Lag> {
  const lags = new Map<string, Lag>()
  for (const { metric, interval, lag } of rows.toSorted((a, b) => a.lag.points - b.lag.points)) {
    const rule = rules.get(`${metric} ${interval}`)
    lags.set(metric, { ...lag, rule: rule?.seconds ?? null, basis: rule?.basis ?? 'none' })
  }
  return lags
}
