import { type Counted, countSeries, footersOf, identityColumns } from '../store/footers.ts'
import { identityOf } from '../points/order.ts'
import { type Damage, finding } from './damage.ts'
import { Engine } from '../store/engine.ts'
import { isPlain } from '../ledger/coverage.ts'
import type { CoverageRow } from '../ledger/entry.ts'
import { heldCoverage, type HeldFile, heldSeries, type HeldSeries, liveFiles, storedInterval } from '../ledger/held.ts'
import { inLake } from '../store/layout.ts'
import type { Ledger } from '../ledger/ledger.ts'
import { partitionsOf } from '../points/files.ts'
import { readPoints } from '../views/relations.ts'
import { count } from '../time.ts'
import { intersect } from '../windows.ts'
import { partitionOf } from '../metrics/verify-plan.ts'

/** What the files hold, held against what the ledger says of them. */
export interface Contents {
  readonly findings: readonly Damage[]
  readonly series: number
  readonly points: number
}

/**
 * Reads the footers of all live files and counts the points of every series in them: each must be what the ledger says,
 * and each covered window must hold a point for every interval of the calendar. `damaged` files are left out.
 */
export async function checkContents(ledger: Ledger, damaged: ReadonlySet<string>): Promise<Contents> {
  const { files, series, coverage } = factsOf(ledger)
  const readable = files.filter(({ path }) => path.endsWith('.parquet') && !damaged.has(path))
  const points = files.filter(({ table }) => table === 'points')
  const lost = new Set(partitionsOf(points.filter(({ path }) => damaged.has(path))).keys())
  const sound = points.filter(({ path }) => !damaged.has(path))
  const known = series.filter((one) => !lost.has(partitionOf(one)))
  using engine = await Engine.open()
  const findings = await checkFooters(engine, ledger, readable)
  const all = await countSeries(engine, readPoints(ledger.root, sound))
  const counted = all.filter((one) => !lost.has(`${one.metric} ${one.interval}`))
  findings.push(...checkSeries(known, counted), ...checkCalendar(series, coverage))
  return { findings, series: counted.length, points: counted.reduce((sum, one) => sum + one.points, 0) }
}

interface Facts {
  readonly files: readonly HeldFile[]
  readonly series: readonly HeldSeries[]
  readonly coverage: ReadonlyMap<string, readonly CoverageRow[]>
}

/** What the ledger says at one version, also while another process commits. */
function factsOf(ledger: Ledger): Facts {
  for (let attempt = 0; ; attempt++) {
    const { version } = ledger.head()
    const facts = { files: liveFiles(ledger), series: [...heldSeries(ledger).values()], coverage: heldCoverage(ledger) }
    if (ledger.head().version === version || attempt > 10) return facts
  }
}

async function checkFooters(engine: Engine, ledger: Ledger, files: readonly HeldFile[]): Promise<Damage[]> {
  const { lake } = ledger.head()
  const paths = [...new Set(files.map(({ path }) => inLake(ledger.root, path)))]
  const footers = await footersOf(engine, paths)
  const findings = new Map<string, Damage>()
  for (const { path, table, rows, added_version } of files) {
    const footer = footers.get(inLake(ledger.root, path))
    // What a stamp keeps are copies of the lake's own tables: their checksum is all that the journal knows.
    if (footer === undefined || table === 'stamp' || findings.has(path)) continue
    const named = footer.lake ?? (table === 'points' ? 'no lake' : lake)
    if (named !== lake || Number(footer.version ?? 0) > added_version) {
      const names = `its footer names ${named === lake ? 'this lake' : named} at version ${footer.version}`
      findings.set(path, finding('footer_differs', path, `${names}, the ledger version ${added_version}`))
    } else if (footer.rows !== rows)
      findings.set(path, finding('rows_differ', path, `it holds ${footer.rows} rows, the ledger says ${rows}`))
  }
  return [...findings.values()]
}

/** Counts and bounds of every series. */
function checkSeries(known: readonly HeldSeries[], counted: readonly Counted[]): Damage[] {
  const found = new Map(counted.map((one) => [keyOf(one), one]))
  const findings: Damage[] = []
  for (const series of known) {
    const interval = storedInterval(series)
    const key = keyOf({ metric: series.metric, interval, ...identityOf(series) })
    const { points, first, last } = found.get(key) ?? { points: 0, first: null, last: null }
    found.delete(key)
    const outside = first !== null && ((series.first_t ?? first) > first || (series.last_t ?? 0) < (last ?? 0))
    const text = `its files hold ${points} points, the ledger says ${series.points}`
    if (points !== series.points || outside) findings.push(finding('series_differs', series.id, text))
  }
  for (const { metric, asset, points } of found.values())
    findings.push(finding('series_differs', `${metric} ${asset}`, `${points} points that no series names`))
  return findings
}

function keyOf(one: Omit<Counted, 'points' | 'first' | 'last'>): string {
  return JSON.stringify([one.metric, one.interval, ...identityColumns.map((name) => one[name])])
}

/** A covered window holds one point for every interval; where one is missing the ledger must say so. */
function checkCalendar(all: Facts['series'], coverage: Facts['coverage']): Damage[] {
  const findings: Damage[] = []
  for (const series of all) {
    const interval = series.interval ?? series.settled
    if (interval === null || series.points <= 0) continue
    const plain = (coverage.get(series.id) ?? []).filter(isPlain)
    const lived = intersect(plain, [{ since: series.first_t ?? 0, until: Infinity }])
    const due = lived.reduce((sum, { since, until }) => sum + count(since, until, interval), 0)
    if (due === series.points) continue
    const text = `${series.points} points where the calendar has ${due} covered intervals`
    findings.push(finding('calendar_differs', series.id, text))
  }
  return findings
}
