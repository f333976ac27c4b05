import { several } from '../../base/figures.ts'
import { gravestOf, type LakeError } from '../../base/errors.ts'
import { type Damage, type DamageKind, damageVerdict, finding } from './findings.ts'
import {
  loadCoverage,
  type StoredFile,
  storedSeries,
  type StoredSeries,
  liveFiles,
  storedInterval,
  summary as countsOf,
} from '../../lake/ledger/index-queries.ts'
import type { CoverageRow } from '../../lake/ledger/entry.ts'
import {
  contradictionError,
  roundOf,
  unansweredError,
  type VerifyLimits,
  type WindowCounts,
} from '../../lake/ledger/verify-rounds.ts'
import type { Ledger } from '../../lake/ledger/ledger.ts'
import type { ObservedAgain } from '../../lake/ledger/lost-points.ts'
import { countStarts } from '../../sources/points/revisable.ts'
import { partitionsOf } from '../../sources/points/files.ts'
import { accessTo } from '../../sources/http/connection.ts'
import { type Ended, endedBy } from '../../sources/http/request-rows.ts'
import { type Diagnosis, examine } from './doctor.ts'
import { execute } from '../../sources/metrics/execute.ts'
import { type IngestDeps, type MetricsInput, type MetricsRun, withMetrics } from '../../sources/metrics/run.ts'
import type { Result } from '../../lake/ledger/job.ts'
import {
  differingAtOnce,
  differingPoints,
  type IngestSummary,
  stoppedEarly,
} from '../../sources/metrics/run-summary.ts'
import { chooseWindows, partitionOf, type VerifyScope } from '../../sources/metrics/verify-plan.ts'
import { type Difference, Findings, type VerifyResult, type Unanswered } from '../../sources/metrics/verify-findings.ts'
import { registryVerdict, type RegistryVerified } from '../../sources/registry/verify.ts'
import type { OwnVerified } from '../../sources/user-files/verify.ts'
import { countSeries, footersOf, identityColumns, type SeriesCount } from '../../lake/store/parquet.ts'
import { identityOf } from '../../sources/points/conversion-types.ts'
import { Engine } from '../../lake/store/engine.ts'
import { isPlain } from '../../lake/ledger/coverage.ts'
import { inLake } from '../../lake/store/layout.ts'
import { readPoints } from '../../query/views/relations.ts'
import { count } from '../../base/time.ts'
import { intersect } from '../../base/windows.ts'

/** Input of a verify. */
interface VerifyInput extends MetricsInput, VerifyLimits {
  /** Scope of the points to request; null: none are requested, the files are proved all the same. */
  readonly scope: VerifyScope | null
}

/** Dependencies of a verify; damage is reported as soon as it is seen, before any request. */
interface VerifyDeps extends IngestDeps {
  readonly onDamage?: (damage: readonly Damage[]) => void
}

/** Result of a verify. Scripts rely on the names of its fields. */
export interface VerifySummary extends Ended<NonNullable<IngestSummary['stopped_by']>> {
  /** Whether every byte and every compared value is the same. */
  readonly ok: boolean
  /** Id of the run; null if no points were requested. */
  readonly run: string | null
  /** Newest version of the lake. */
  readonly version: number
  /** Address of the provider; null if no points were requested. */
  readonly provider: string | null
  /** What was read. */
  readonly checked: VerifyExtent
  /** Damaged files. */
  readonly damage: readonly Damage[]
  /** Months of series that lost points with a file and did not get the same points back. */
  readonly observed_again: readonly ObservedAgain[]
  /** Number of windows in which points are known to be missing. */
  readonly gaps: number
  /**
   * Coverage ranges that the answers resolved, by state: `covered`, `empty`, `unsupported`, `failed`, `not_requested`.
   */
  readonly windows: WindowCounts
  /** Compared windows by result: `identical`, `appended`, `revised`, or the kind of difference. */
  readonly results: Readonly<Record<VerifyResult, number>>
  /** Most credits that it could spend; null: no limit. */
  readonly budget: number | null
  /** Requests sent, repeats included. */
  readonly requests: number
  /** Credits spent on points. */
  readonly credits: number
  /** New points. */
  readonly points_added: number
  /** New vintages of revisable series. */
  readonly vintages_added: number
  /** Single values that differ. */
  readonly differences: readonly Difference[]
  /** Ranges in which very many values differ at once. */
  readonly incidents: number
  /** Acknowledged differences that were seen again. */
  readonly acknowledged: number
  /** Windows without a usable answer. */
  readonly failures: readonly Unanswered[]
  /** Answers of the registry; null if it was not requested. */
  readonly registry: RegistryVerified | null
  /** Comparison with the files from which user data came; null if there are none. */
  readonly own: OwnVerified | null
}

/** Extent of what a verify has read. */
interface VerifyExtent {
  /** Files. */
  readonly files: number
  /** Bytes of these files. */
  readonly bytes: number
  /** Series. */
  readonly series: number
  /** Points. */
  readonly points: number
}

/** Returns the summary of a verify that requested nothing. */
function unasked(
  { budget }: VerifyInput,
  { checked, version, observed_again }: Diagnosis,
  damage: readonly Damage[],
): VerifySummary {
  return {
    ok: false,
    run: null,
    version,
    provider: null,
    checked: { files: checked.files, bytes: checked.bytes, series: 0, points: 0 },
    damage,
    observed_again,
    gaps: 0,
    windows: { held: 0, chosen: 0, verified: 0, refused: 0, failed: 0, left: 0 },
    results: new Findings().results(),
    budget,
    requests: 0,
    credits: 0,
    points_added: 0,
    vintages_added: 0,
    differences: [],
    incidents: 0,
    acknowledged: 0,
    failures: [],
    ...endedBy<NonNullable<IngestSummary['stopped_by']>>(null),
    registry: null,
    own: null,
  }
}

/** Findings of `doctor` that do not concern the stored history. */
const conveniences: ReadonlySet<DamageKind> = new Set(['views_missing', 'views_torn', 'views_moved', 'disk_full'])

/**
 * Proves the bytes of the lake, then requests stored history again from the provider and compares it. A difference is
 * recorded and never applied. If the journal or the ledger is damaged nothing is requested.
 */
export async function verify(input: VerifyInput, deps: VerifyDeps): Promise<VerifySummary> {
  const { scope } = input
  const diagnosis = await examine({ data: input.settings.data, thorough: true }, deps)
  const damage = diagnosis.findings.filter(({ kind, severity }) => severity === 'damage' && !conveniences.has(kind))
  // A lake of a newer program is not damaged, and the refusal itself reports it.
  deps.onDamage?.(damage.filter(({ kind }) => kind !== 'newer_version'))
  const nothing: VerifySummary = unasked(input, diagnosis, damage)
  if (isUnreadable(nothing)) return nothing
  if (scope === null) return { ...nothing, ok: damage.length === 0 }
  const { url: configured, key } = input.settings.metrics
  // Damage is reported even if no provider can be contacted.
  if (damage.length > 0 && (configured === null || key === null)) return nothing
  const { url } = accessTo('metrics', input.settings)
  const compared = new Findings()
  const purpose = { name: 'verify' as const, budget: input.budget, onBatch: compared.add }
  return await withMetrics(
    input,
    deps,
    purpose,
    async (run) => await compare(run, { ...input, scope }, nothing, compared, { url, onDamage: deps.onDamage }),
  )
}

/**
 * Kinds of damage on which no comparison depends: data files, which are left out, and what is stored next to the
 * history.
 */
const besideHistory: readonly string[] = ['file_', 'head_', 'stamp_']

/** Whether journal or ledger are damaged: then nothing can be compared. */
export function isUnreadable({ damage }: Pick<VerifySummary, 'damage'>): boolean {
  return damage.some(({ kind }) => !besideHistory.some((begins) => kind.startsWith(begins)))
}

/** Returns the summary of a verify with the answers of the registry. */
export function withRegistryVerified(summary: VerifySummary, registry: RegistryVerified): VerifySummary {
  const whole = { ...summary, registry }
  return { ...whole, ok: summary.ok && registryVerdict(registry) === null, version: registry.version }
}

/** Compares the provider's current answers; `nothing` is the result if nothing was requested. */
async function compare(
  metricsRun: MetricsRun,
  input: VerifyInput & { readonly scope: VerifyScope },
  nothing: VerifySummary,
  findings: Findings,
  { url, onDamage }: { readonly url: string; readonly onDamage: VerifyDeps['onDamage'] },
): Promise<Result<VerifySummary>> {
  const { run, deps, tally } = metricsRun
  const { id, ledger } = run
  const damaged = new Set(nothing.damage.map(({ path }) => path))
  const contents = await checkContents(ledger, damaged)
  onDamage?.(contents.findings)
  const { paths, assets, since, until } = input.scope
  const harmed = liveFiles(ledger, { table: 'points' }).filter(({ path }) => damaged.has(path))
  const round = roundOf(
    ledger,
    'verify',
    [paths, assets, since, until, input.budget, input.spreadDays],
    deps.nowMicros(),
  )
  const chosen = chooseWindows(ledger, {
    ...input,
    begun: round.beganAt,
    damaged: new Set(partitionsOf(harmed).keys()),
  })
  if (chosen.plan.asks.length === 0) deps.onEvent({ kind: 'planned', plan: chosen.plan })
  else await execute(metricsRun, chosen.plan, round)
  await findings.readArchive(ledger)
  const { points_added, vintages_added, incidents, acknowledged, stopped_by, resume_at, words } = tally.summary(id)
  const { requests, credits } = tally.actual()
  const early = { stopped_by, resume_at, words }
  const done = { requests, credits, points_added, vintages_added, incidents, acknowledged, ...early }
  const damage = [...nothing.damage, ...contents.findings]
  const differences = findings.differences(ledger, { base: url, secrets: input.settings.secrets })
  const { asks } = chosen.plan
  const { verified, refused, failures, left } = findings.windows(asks, chosen.refused, stopped_by !== null)
  const { version, provider } = ledger.head()
  const value: VerifySummary = {
    ...nothing,
    ok:
      damage.length === 0 &&
      differences.length === 0 &&
      incidents === 0 &&
      failures.length === 0 &&
      stopped_by === null,
    run: id,
    version,
    provider: provider?.metrics ?? null,
    checked: { ...nothing.checked, series: contents.series, points: contents.points },
    damage,
    gaps: countsOf(ledger).gaps,
    windows: { held: chosen.windows, chosen: asks.length, verified, refused, failed: failures.length, left },
    results: findings.results(),
    differences,
    failures,
    ...done,
  }
  return { value, stopped_by, error: verifyVerdict(value) }
}

/** Builds the error that a verify ends with, the gravest first; null if every byte and every value is the same. */
export function verifyVerdict(summary: VerifySummary): LakeError | null {
  const next =
    'nothing stored was changed: send the report (--report FILE) to the provider, then pitlake violations acknowledge'
  return gravestOf([
    damageVerdict(summary.damage),
    contradictionError(
      summary.differences.length,
      `${several(summary.differences.length, 'stored value differs', 'stored values differ')} upstream`,
      next,
    ),
    differingAtOnce(summary.incidents),
    stoppedEarly(summary),
    unansweredError(summary.failures, several(summary.failures.length, 'window')),
    summary.registry && registryVerdict(summary.registry),
    summary.own && differingPoints(summary.own.differences.length, 'in the files from which they came'),
    summary.own && differingAtOnce(summary.own.incidents),
  ])
}

/**
 * Reads the footers of all live files and counts the points of every series in them: each must match the ledger, and
 * each covered window must contain a point for every interval of the calendar. `damaged` files are left out.
 */
export async function checkContents(ledger: Ledger, damaged: ReadonlySet<string>) {
  const { files, series, coverage } = factsOf(ledger)
  const readable = files.filter(({ path }) => path.endsWith('.parquet') && !damaged.has(path))
  const points = files.filter(({ table }) => table === 'points')
  const lostPartitions = new Set(partitionsOf(points.filter(({ path }) => damaged.has(path))).keys())
  const sound = points.filter(({ path }) => !damaged.has(path))
  const knownSeries = series.filter((row) => !lostPartitions.has(partitionOf(row)))
  using engine = await Engine.open()
  const findings = await checkFooters(engine, ledger, readable)
  const relation = readPoints(ledger.root, sound)
  const all = await countSeries(engine, relation)
  const starts = new Map((await countStarts(engine, ledger, relation)).map((row) => [keyOf(row), row.points]))
  const counted = all.filter((row) => !lostPartitions.has(`${row.metric} ${row.interval}`))
  findings.push(...checkSeries(knownSeries, counted), ...checkCalendar(series, coverage, starts))
  return { findings, series: counted.length, points: counted.reduce((sum, row) => sum + row.points, 0) }
}

/** Files, series and coverage of one version. */
interface LedgerFacts {
  readonly files: readonly StoredFile[]
  readonly series: readonly StoredSeries[]
  /** Coverage ranges by the id of their series. */
  readonly coverage: ReadonlyMap<string, readonly CoverageRow[]>
}

/** Reads the facts of the ledger at one version, also while another process commits. */
function factsOf(ledger: Ledger): LedgerFacts {
  for (let attempt = 0; ; attempt++) {
    const { version } = ledger.head()
    const facts = {
      files: liveFiles(ledger),
      series: [...storedSeries(ledger).values()],
      coverage: loadCoverage(ledger),
    }
    if (ledger.head().version === version || attempt > 10) return facts
  }
}

async function checkFooters(engine: Engine, ledger: Ledger, files: readonly StoredFile[]): Promise<Damage[]> {
  const { lake } = ledger.head()
  const paths = [...new Set(files.map(({ path }) => inLake(ledger.root, path)))]
  const footers = await footersOf(engine, paths)
  const findings = new Map<string, Damage>()
  for (const { path, table, rows, added_version } of files) {
    const footer = footers.get(inLake(ledger.root, path))
    // Files kept for a stamp are copies of the lake's own tables: their checksum is all that the journal knows.
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
function checkSeries(storedSeries: readonly StoredSeries[], counted: readonly SeriesCount[]): Damage[] {
  const countedByKey = new Map(counted.map((row) => [keyOf(row), row]))
  const findings: Damage[] = []
  for (const series of storedSeries) {
    const interval = storedInterval(series)
    const key = keyOf({ metric: series.metric, interval, ...identityOf(series) })
    const { points, first, last } = countedByKey.get(key) ?? { points: 0, first: null, last: null }
    countedByKey.delete(key)
    const outside = first !== null && ((series.first_t ?? first) > first || (series.last_t ?? 0) < (last ?? 0))
    const text = `its files hold ${points} points, the ledger says ${series.points}`
    if (points !== series.points || outside) findings.push(finding('series_differs', series.id, text))
  }
  for (const { metric, asset, points } of countedByKey.values())
    findings.push(finding('series_differs', `${metric} ${asset}`, `${points} points that no series names`))
  return findings
}

function keyOf(row: Omit<SeriesCount, 'points' | 'first' | 'last'>): string {
  return JSON.stringify([row.metric, row.interval, ...identityColumns.map((name) => row[name])])
}

/**
 * Checks that a covered window contains one point for every interval; where one is missing the ledger must record it.
 */
function checkCalendar(
  all: readonly StoredSeries[],
  coverage: ReadonlyMap<string, readonly CoverageRow[]>,
  starts: ReadonlyMap<string, number>,
): Damage[] {
  const findings: Damage[] = []
  for (const series of all) {
    const interval = series.interval ?? series.settled
    if (interval === null || series.points <= 0) continue
    const plain = (coverage.get(series.id) ?? []).filter(isPlain)
    const lived = intersect(plain, [{ since: series.first_t ?? 0, until: Infinity }])
    const due = lived.reduce((sum, { since, until }) => sum + count(since, until, interval), 0)
    const points = starts.get(keyOf({ metric: series.metric, interval, ...identityOf(series) })) ?? series.points
    if (due === points) continue
    const text = `${points} points where the calendar has ${due} covered intervals`
    findings.push(finding('calendar_differs', series.id, text))
  }
  return findings
}
