import type { Catalogue } from '../../catalog/catalogue.ts'
import type { CoverageRow, Json } from '../../lake/ledger/entry.ts'
import {
  countValueChanges,
  loadCoverage,
  storedSeries,
  storedStamps,
  type StoredViolation,
  storedViolations,
  storedWeekStart,
  type LakeSummary,
  summary,
} from '../../lake/ledger/index-queries.ts'
import {
  storedRuns,
  storedVerified,
  heldBackSnapshot,
  type StoredRun,
  type StoredRunEnd,
  lastFetchEnd,
  lastPublished,
  type OutcomeCount,
  pendingSelections,
  requestsByOutcome,
  requestTotals,
  runAtWork,
  verifiedTotals,
} from '../../lake/ledger/run-queries.ts'
import { lagsOfCopies, lagWords } from '../../lake/ledger/derived.ts'
import type { Head, Ledger } from '../../lake/ledger/ledger.ts'
import { lagsOfPages } from '../../lake/ledger/pages.ts'
import { proveLive } from '../../lake/ledger/live-digest.ts'
import { observedAgain, type ObservedAgain } from '../../lake/ledger/lost-points.ts'
import { holderOf, isFree } from '../../lake/store/lock.ts'
import { mirrorOf } from '../../lake/store/marker.ts'
import type { MetricsProvider } from '../../sources/metrics/api.ts'
import { notAsked, pendingAsks, selectedOf, selectedSeries } from '../../sources/metrics/prepare.ts'
import { mappingRemedy, selectedPlaceholders, unmappedInWords } from '../../sources/metrics/unmapped.ts'
import { readRefusal } from '../../lake/ledger/refusals.ts'
import { type ListedRefusal, refusals } from '../../lake/ledger/violations.ts'
import type { Settings } from '../../catalog/settings.ts'
import {
  count,
  day,
  floor,
  formatInstant,
  formatMillis,
  type Instant,
  type Interval,
  unshownInterval,
} from '../../base/time.ts'
import { parseSeriesId, readableSeries } from '../../catalog/series.ts'
import { type BeginsLater, beginsLater } from '../../sources/metrics/run-summary.ts'
import { isOwnPath, ownPrefix } from '../../sources/points/own-rows.ts'
import { beforeFirst, isLost } from '../../lake/ledger/coverage.ts'
import { judgeSeries, type SeriesStanding, silentUserData } from './freshness.ts'
import { registryState } from '../../sources/registry/staging.ts'
import { isOpenFinding, type ListedFinding, listFindings } from '../../sources/registry/verify.ts'
import { registryFacts, schemaChanges } from '../../sources/registry/status.ts'
import { storedArrivals, type StoredArrivals, judgeRule } from '../../trust/availability-audit.ts'
import type { Window } from '../../base/windows.ts'

/** Input of a status. */
export interface StatusInput {
  readonly settings: Settings
  readonly catalogue: Catalogue
  readonly now: Instant
  /** Whether all points are read to compare the rules with their arrivals; by default only if they are few. */
  readonly arrivals?: boolean
  /** The page that is about to be written again, which is therefore not compared; absolute. */
  readonly page?: string
}

/** Number of points that are read in a second or two. */
const fewPoints = 2_000_000

/** Points against the calendar, since the first point of each series. Numbers are intervals. */
export interface CoverageCounts {
  /** Intervals that should have a point. */
  readonly due: number
  /** Intervals with a stored point. */
  readonly held: number
  /** Stored intervals that were requested again with the same answer. */
  readonly verified: number
  /** `held` as a share of `due`, 0 to 1; null if nothing is expected. */
  readonly share: number | null
  /** `verified` as a share of `held`, 0 to 1; null if nothing is stored. */
  readonly verified_share: number | null
}

/** Series by the state of their newest point. */
export interface FreshnessCounts {
  /** Series with every expected point. */
  readonly fresh: number
  /** Series whose point is expected, was requested, and has not arrived yet. */
  readonly pending: number
  /** Series whose point is expected and was not requested. */
  readonly behind: number
  /** Series that were requested without success for longer than the tolerance of the endpoint. */
  readonly stopped: number
  /** Seconds for which the most overdue point has been due without being requested. */
  readonly overdue_seconds: number
}

/** Refusals of series that have points. */
export interface RefusedCounts {
  /** Series that are refused now. */
  readonly series: number
  /** Windows that are refused now. */
  readonly windows: number
  /** Time of the first refusal; null if no series is refused. */
  readonly since: string | null
  /** Text of the first refusal; null if no series is refused. */
  readonly words: string | null
  /** Series that the provider has withdrawn. */
  readonly withdrawn: number
  /** Withdrawn series that are not acknowledged. */
  readonly unacknowledged: number
}

/** A window without points between stored points. */
export interface GapFact {
  readonly metric: string
  readonly asset: string
  /** Number of missing points. */
  readonly points: number
  /** First missing `t`, RFC 3339. */
  readonly since: string
  /** End, exclusive, RFC 3339. */
  readonly until: string
}

/** Ranges without points. */
export interface HolesFact {
  /** The gap with most missing points: `metric`, `asset`, `points`, `since`, `until`; null if there is none. */
  readonly longest: GapFact | null
  /** Number of series that begin later than requested. */
  readonly later: number
  /** The first of these series: `metric`, `asset`, `interval`, `begins`, `asked_from`; null if there is none. */
  readonly begins: BeginsLater | null
}

/** Selected windows that a run planned and did not request. */
export interface NotAskedCounts {
  /** Number of series. */
  readonly series: number
  /** Number of windows. */
  readonly windows: number
  /** When the oldest window was planned; null if there is none. */
  readonly since: string | null
}

/** Subjects of which a status reports since when the oldest exists. */
type AgedSubject = 'violations' | 'incidents' | 'findings' | 'withdrawn' | 'failed' | 'gaps'

/** The last publish to a destination. */
export interface PublishFact {
  /** Folder or bucket. */
  readonly destination: string
  /** When the publish ended. */
  readonly at: string
  /** Exit code; null while it runs, or if it was killed. */
  readonly exit_code: number | null
  /** Published files that were missing or cut at the destination. */
  readonly missing: number
  /** Published files that were changed at the destination. */
  readonly changed: number
}

/** A copy or a page that is behind the lake. */
export interface CopyLag {
  /** Name of the copy: published tables, a backup, this mirror, a status page, or an exported page. */
  readonly thing: string
  /** Version of the copy; null if it is not known. */
  readonly version: number | null
  /** Newest version of the lake. */
  readonly newest: number
  /** The finding as a sentence. */
  readonly words: string
  /** Command that brings it up to date. */
  readonly remedy: string
}

/** Requests on record. */
export interface RequestCounts {
  /** All requests. */
  readonly total: number
  /** All credits. */
  readonly credits: number
  /** Requests of the last 24 hours. */
  readonly day: number
  /** Credits of the last 24 hours. */
  readonly day_credits: number
  /** Requests for points in the busiest minute of the last 24 hours. */
  readonly busiest_minute: number
  /** Credits since midnight UTC. */
  readonly credits_today: number
  /** Counts by API and outcome: `api`, `outcome`, `requests`. */
  readonly by_outcome: readonly OutcomeCount[]
  /** Requests per minute that the configuration allows. */
  readonly per_minute: number
}

/** State of the registry. */
export interface RegistryStanding {
  /** Date of the first snapshot; null if there is none. */
  readonly first_snapshot: string | null
  /** Date of the last snapshot; null if there is none. */
  readonly last_snapshot: string | null
  /** Number of epochs of the feed, from 1; 0 before the first snapshot. */
  readonly epoch: number
  /** Last poll that read the feed to its end; null if there is none. */
  readonly feed_at: string | null
  /** Current records by table. */
  readonly records: Readonly<Record<string, number>>
  /** Rows of `schema_changes`; null if they cannot be read. */
  readonly schema_changes: number | null
  /** Open contradictions that `verify` found; null if they cannot be read. */
  readonly findings: number | null
  /** Acknowledged contradictions; null if they cannot be read. */
  readonly findings_acknowledged: number | null
}

/** Availability rules that arrivals contradict. */
export interface RuleCounts {
  /** Rules that arrivals contradict. */
  readonly contradicted: number
  /** Rules that are imprecise. */
  readonly imprecise: number
  /** Stored points that imprecise rules date. */
  readonly imprecise_points: number
}

/** Points that were lost with files, by months of series. */
export interface ObservedAgainCounts {
  /** Months that were observed again. */
  readonly months: number
  /** Points of these months. */
  readonly points: number
  /** Months that were not observed again yet. */
  readonly waiting: number
}

/** User data that no longer arrive as they used to. */
export interface SilentMetric {
  /** Path, such as `own/NAME`. */
  readonly metric: string
  /** When an import last added something. */
  readonly last_at: string
  /** Usual time between two imports that add something. */
  readonly every_seconds: number
}

/** The provider that the lake has recorded; null while nothing is committed. */
interface ProviderFacts {
  /** Address of the provider; null before the first commit. */
  readonly provider: string | null
  /** Address of each API, `metrics` and `registry`; null if the lake does not use it. */
  readonly providers: { readonly metrics: string | null; readonly registry: string | null }
  /** Whether the data come from the sandbox. */
  readonly synthetic: boolean
}

/** Counts of the newest version, as a status reports them. */
interface VersionFacts extends Omit<LakeSummary, 'findings' | 'newest'> {
  /** Rows of the view `clock_findings`. */
  readonly clock_findings: number
  /** The largest stored `t`; null if there are no points. */
  readonly newest: string | null
  /** Time of the newest version; null if there is none. */
  readonly committed_at: string | null
}

/** Facts of a status. Scripts rely on the names. */
export interface StatusFacts extends ProviderFacts, VersionFacts {
  /** The lake that the folder mirrors; null for a lake that is not a mirror. */
  readonly mirror_of: string | null
  /** Stored points against the points that should exist. */
  readonly coverage: CoverageCounts
  /** Series by the state of their newest point. */
  readonly freshness: FreshnessCounts
  /** Series of the provider that `select` no longer names. They are not judged. */
  readonly unselected: number
  /** Windows that `verify` requested again. */
  readonly verified: VerifiedFact
  /** Changes of the types of values of metrics. */
  readonly schema_changes: number
  /** Series that have points and that the provider now refuses. */
  readonly refused: RefusedCounts
  /** Ranges without points. */
  readonly holes: HolesFact
  /** Selected windows that a run planned and did not request. */
  readonly not_requested: NotAskedCounts
  /** Time of the oldest case of each count; null if there is none. */
  readonly oldest: Readonly<Record<AgedSubject, string | null>>
  /** The last publish to each destination. */
  readonly published: readonly PublishFact[]
  /** Copies and pages that are behind the lake. */
  readonly behind: readonly CopyLag[]
  /** Requests and credits. */
  readonly requests: RequestCounts
  /** State of the registry. */
  readonly registry: RegistryStanding
  /** Availability rules against arrivals; null if the arrivals were not read. */
  readonly rules: RuleCounts | null
  /** Number of stamped results. */
  readonly stamps: number
  /** Files that are missing or have a different size. */
  readonly files_damaged: number
  /** Points that were lost with files. */
  readonly observed_again: ObservedAgainCounts
  /** Jobs that are at work now. */
  readonly running: readonly string[]
  /** The newest run; null if there is none. */
  readonly last_run: RunFact | null
  /**
   * Ends of the last runs: `fetch`, and `held_back` (the run whose snapshot was held back). Each has `job`, `at`,
   * `stopped_by` and `exit_code`, or is null.
   */
  readonly last_ends: LastEnds
  /** Most frequent reason of failed windows; null if none failed. */
  readonly failed_most: string | null
  /** User data whose points were lost with a file and have not been imported again. */
  readonly lost_user_data: readonly string[]
  /** User data that stopped arriving. */
  readonly user_data: readonly SilentMetric[]
  /** Selected series that are never requested, because a placeholder in their name is not mapped. */
  readonly unmapped: UnmappedSeries
}

/** Windows that were requested again and compared. */
export interface VerifiedFact {
  /** Number of windows. */
  readonly windows: number
  /** Series with a window that differed. */
  readonly differing: number
  /** Series whose last request for stored history the provider refused. */
  readonly refused: number
  /** The last comparison, RFC 3339; null if there is none. */
  readonly last_at: string | null
}

/** Data from which a status is judged. */
export interface StatusSources {
  readonly series: readonly SeriesStanding[]
  /** Null if the arrivals were not read. */
  readonly arrivals: readonly StoredArrivals[] | null
  /** Findings of verifies in the registry; null if they cannot be read. */
  readonly findings: readonly ListedFinding[] | null
}

/** Facts of a status with their sources. */
export interface SourcedFacts extends StatusSources {
  readonly facts: StatusFacts
}

/** Reads the facts of a status with their sources. */
export async function readStatusFacts(
  ledger: Ledger,
  input: StatusInput,
  files_damaged: number,
): Promise<SourcedFacts> {
  proveLive(ledger)
  const { settings, catalogue, now } = input
  const head = ledger.head()
  const counts = summary(ledger)
  const coverage = loadCoverage(ledger)
  const verified = storedVerified(ledger)
  const selected = await selectedSeries(ledger, input)
  const stored = [...storedSeries(ledger).values()]
  const series = judgeSeries(stored, coverage, verified, catalogue, now, storedWeekStart(ledger), selected)
  const arrivals = await arrivalsFor(ledger, input, counts.points)
  const findings = await findingsIfReadable(ledger)
  const refused = refusals(ledger)
  const running = await runningJobs(ledger.root)
  const facts: StatusFacts = {
    ...who(head),
    mirror_of: await mirrorOf(ledger.root),
    ...plain(counts, head),
    coverage: countCoverage(series),
    freshness: countFresh(series),
    unselected: stored.filter(({ id, metric }) => selected?.has(id) === false && !isOwnPath(metric)).length,
    verified: verifiedOf(ledger),
    schema_changes: countValueChanges(ledger),
    refused: refusedOf(refused),
    holes: holesIn(coverage),
    not_requested: await notAskedOf(ledger, input, coverage, running),
    oldest: oldestOf(ledger, coverage, refused, findings),
    published: lastPublished(ledger).map(({ at, ...rest }) => ({ ...rest, at: formatMillis(at) })),
    behind: [...(await lagsOfCopies(ledger)), ...(await lagsOfPages(ledger, input.page))].map((lag) => ({
      thing: lag.thing.name,
      version: lag.thing.version,
      newest: lag.lake.newest,
      words: lagWords(lag),
      remedy: lag.thing.remedy,
    })),
    requests: {
      ...requestTotals(ledger, now * 1_000_000),
      credits_today: creditsOf(ledger, now),
      by_outcome: requestsByOutcome(ledger),
      per_minute: settings.metrics.requestsPerMinute,
    },
    registry: {
      ...registryFacts(ledger),
      records: registryState(ledger).records,
      schema_changes: await schemaChanges(ledger),
      findings: findings && findings.filter(isOpenFinding).length,
      findings_acknowledged: findings && findings.filter(({ acknowledged_at }) => acknowledged_at !== null).length,
    },
    rules: arrivals && rulesOf(arrivals),
    stamps: storedStamps(ledger).length,
    files_damaged,
    observed_again: countAgain(observedAgain(ledger)),
    running,
    last_run: storedRuns(ledger, 1).map(runFact)[0] ?? null,
    last_ends: lastEndsOf(ledger),
    failed_most: failedOf(coverage).most,
    lost_user_data: lostUserData(coverage),
    user_data: silentUserData(ledger, settings.check, now).map(({ metric, last, rhythm }) => {
      return { metric, last_at: formatInstant(last), every_seconds: rhythm }
    }),
    unmapped: await readUnmapped(ledger, input),
  }
  return { facts, series, arrivals, findings }
}

/** The end of a run as scripts read it. */
export interface RunEnd {
  readonly job: string
  /** Time when the run began, RFC 3339. */
  readonly at: string
  /** Reason why it ended early; null if it did not. */
  readonly stopped_by: string | null
  readonly exit_code: number | null
}

/** Ends of runs that a person has to know of. */
export interface LastEnds {
  /** How the last fetch ended; null where none has. */
  readonly fetch: RunEnd | null
  /** The run whose snapshot of the registry was held back, and nothing was applied since; else null. */
  readonly held_back: RunEnd | null
}

/** Reads the ends of the last runs that contacted a provider. */
export function lastEndsOf(ledger: Ledger): LastEnds {
  const endOf = (end: StoredRunEnd | null): RunEnd | null => {
    if (end === null) return null
    const { started_at, ...rest } = end
    return { ...rest, at: formatMillis(started_at) }
  }
  return { fetch: endOf(lastFetchEnd(ledger)), held_back: endOf(heldBackSnapshot(ledger)) }
}

/** Lists the findings of verifies in the registry; null if a file of it cannot be read, which other checks report. */
export async function findingsIfReadable(ledger: Ledger): Promise<readonly ListedFinding[] | null> {
  return await listFindings(ledger, null).catch(() => null)
}

/** Windows without a usable answer, apart from refusals. */
interface FailedWindows {
  readonly count: number
  /** The most frequent reason. */
  readonly most: string | null
  /** Time when the oldest of them was requested, RFC 3339. */
  readonly since: string | null
}

/** Reads which windows failed. */
export function failedOf(coverage: ReadonlyMap<string, readonly CoverageRow[]>): FailedWindows {
  const rows = [...coverage.values()]
    .flat()
    .filter((row) => row.state === 'failed' && readRefusal(row.reason) === null && !isLost(row))
  const [most] = [...Map.groupBy(rows, ({ reason }) => reason)].toSorted(([, a], [, b]) => b.length - a.length)
  const since = rows.reduce((least, { asked_at }) => Math.min(least, asked_at), Infinity)
  return { count: rows.length, most: most?.[0] ?? null, since: rows.length === 0 ? null : formatInstant(since) }
}

/** Selected series that are never requested. */
export interface UnmappedSeries {
  /** Number of series. */
  readonly series: number
  /** How many they are, and which; null if there are none. */
  readonly words: string | null
  /** What to write into `pitlake.yaml`; null if nothing is missing. */
  readonly remedy: string | null
}

/** Reads which selected series are never requested. */
export async function readUnmapped(ledger: Ledger, { settings, catalogue }: MetricsProvider): Promise<UnmappedSeries> {
  const names = await selectedPlaceholders({ settings, catalogue, selections: settings.select }, ledger)
  const series = new Set(names.flatMap((name) => name.series)).size
  return { series, words: series === 0 ? null : unmappedInWords(names), remedy: mappingRemedy(names) }
}

/** Sums the credits spent since this UTC day began. */
function creditsOf(ledger: Ledger, now: Instant): number {
  return requestTotals(ledger, (floor(now, '24h') + day) * 1_000_000).day_credits
}

/**
 * Reads the stored arrivals; null if they are too many, or a file is damaged: that removes this judgement, not the
 * status that must report it.
 */
async function arrivalsFor(ledger: Ledger, input: StatusInput, points: number): Promise<StoredArrivals[] | null> {
  if (!(input.arrivals ?? points <= fewPoints)) return null
  return await storedArrivals(ledger, input.catalogue, () => true).catch(() => null)
}

function rulesOf(arrivalsByRule: readonly StoredArrivals[]): RuleCounts {
  const rows = arrivalsByRule.map(({ endpoint, interval, rules, arrivals }) =>
    judgeRule(endpoint.path, interval, rules, arrivals),
  )
  const imprecise = rows.filter(({ verdict }) => verdict === 'imprecise')
  return {
    contradicted: rows.filter(({ verdict }) => verdict === 'contradicted').length,
    imprecise: imprecise.length,
    imprecise_points: imprecise.reduce((sum, { ruled }) => sum + ruled, 0),
  }
}

/** Returns the provider recorded in the lake; null while nothing is committed. */
function who({ provider }: Head): ProviderFacts {
  const metrics = provider?.metrics ?? null
  const registry = provider?.registry ?? null
  return { provider: metrics ?? registry, providers: { metrics, registry }, synthetic: provider?.synthetic ?? false }
}

function plain(counts: LakeSummary, head: Head): VersionFacts {
  const { findings, newest, ...rest } = counts
  return {
    ...rest,
    clock_findings: findings,
    newest: newest === null ? null : formatInstant(newest),
    committed_at: head.version === 0 ? null : formatMillis(head.committed_at),
  }
}

function countCoverage(series: readonly SeriesStanding[]): CoverageCounts {
  const counts = { due: 0, held: 0, verified: 0 }
  for (const { due, held, verified, interval } of series) {
    counts.due += countIn(due === null ? [] : [due], interval)
    counts.held += countIn(held, interval)
    counts.verified += countIn(verified, interval)
  }
  const share = (part: number, whole: number) => (whole === 0 ? null : part / whole)
  return { ...counts, share: share(counts.held, counts.due), verified_share: share(counts.verified, counts.held) }
}

/** Counts the intervals in the windows. */
function countIn(windows: readonly Window[], interval: Interval): number {
  let total = 0
  for (const window of windows) total += count(window.since, window.until, interval)
  return total
}

/**
 * Counts the series by the state of their newest points, and measures how long the most overdue unrequested one has
 * been due.
 */
export function countFresh(series: readonly SeriesStanding[]): FreshnessCounts {
  const counts = { fresh: 0, pending: 0, behind: 0, stopped: 0, overdue_seconds: 0 }
  for (const { fresh, overdue } of series) {
    if (fresh !== null) counts[fresh]++
    counts.overdue_seconds = Math.max(counts.overdue_seconds, overdue)
  }
  return counts
}

/**
 * Counts series that have points and are refused now (with their windows and the first refusal), and withdrawn ones.
 */
function refusedOf(all: readonly ListedRefusal[]): RefusedCounts {
  const now = all.filter(({ withdrawn }) => !withdrawn)
  const withdrawnSeries = all.filter(({ withdrawn }) => withdrawn)
  const first = now.toSorted((a, b) => a.since - b.since)[0]
  const count = (some: readonly ListedRefusal[]): number => new Set(some.map(({ listed }) => listed.series)).size
  return {
    series: count(now),
    windows: now.reduce((sum, { rows }) => sum + rows.length, 0),
    since: first === undefined ? null : formatInstant(first.since),
    words: first?.words ?? null,
    withdrawn: count(withdrawnSeries),
    unacknowledged: count(withdrawnSeries.filter(isOpen)),
  }
}

function lostUserData(coverage: ReadonlyMap<string, readonly CoverageRow[]>): string[] {
  const metrics = [...coverage].filter(([, rows]) => rows.some(isLost)).map(([id]) => parseSeriesId(id)?.metric ?? '')
  return [...new Set(metrics)].filter((metric) => metric.startsWith(ownPrefix)).toSorted()
}

const isOpen = ({ listed }: ListedRefusal): boolean => listed.acknowledged_at === null

/** Finds the age of the oldest counted case: its `t` for gaps, else when it was seen. RFC 3339. */
function oldestOf(
  ledger: Ledger,
  coverage: ReadonlyMap<string, readonly CoverageRow[]>,
  refused: readonly ListedRefusal[],
  findings: readonly ListedFinding[] | null,
): Readonly<Record<AgedSubject, string | null>> {
  const rows = [...coverage.values()].flat()
  const failed = rows.filter(({ state, reason }) => state === 'failed' && readRefusal(reason)?.since === undefined)
  const oldest = (instants: readonly Instant[]): string | null =>
    instants.length === 0 ? null : formatInstant(instants.reduce((least, instant) => Math.min(least, instant)))
  const open = (findings ?? []).filter(isOpenFinding)
  const openViolations = storedViolations(ledger).filter(
    ({ acknowledged_at, reverted_at }) => acknowledged_at === null && reverted_at === null,
  )
  const found = (some: readonly StoredViolation[]): Instant[] =>
    some.map(({ offered_at }) => Math.floor(offered_at / 1_000_000))
  return {
    violations: oldest(found(openViolations.filter(({ incident }) => incident === null))),
    incidents: oldest(found(openViolations.filter(({ incident }) => incident !== null))),
    findings: oldest(open.map(({ found_at }) => Math.floor(found_at / 1_000_000))),
    withdrawn: oldest(refused.filter((refusal) => refusal.withdrawn && isOpen(refusal)).map(({ since }) => since)),
    failed: oldest(failed.map(({ asked_at }) => asked_at)),
    gaps: oldest(rows.filter(({ reason }) => reason === 'gap').map(({ since }) => since)),
  }
}

/**
 * Lists the windows that runs planned and did not request, as far as they are selected now: those on record, and those
 * that killed runs left over.
 */
async function notAskedOf(
  ledger: Ledger,
  input: StatusInput,
  coverage: ReadonlyMap<string, readonly CoverageRow[]>,
  running: readonly string[],
): Promise<NotAskedCounts> {
  const notRequested = [...coverage.values()].flat().filter(({ state }) => state === 'not requested')
  // For a running job it is not known yet what it leaves over.
  const atWork = running.includes('metrics') ? runAtWork(ledger) : null
  const killed = pendingSelections(ledger, input.now, atWork).since
  const asks = killed === null ? [] : await pendingAsks(ledger, input, input.now, atWork)
  const at = Math.floor((killed ?? 0) / 1_000_000)
  const request = { at: input.now, request: '', weekStart: input.settings.metrics.weekStart }
  const silent = notAsked(ledger, asks, new Map(), request).flatMap((window) => window.coverage)
  const fresh = silent.filter(({ asked_at }) => asked_at === input.now).map((row) => ({ ...row, asked_at: at }))
  const rows = await selectedOf(ledger, input, [...notRequested, ...fresh])
  const since = rows.reduce((least, row) => Math.min(least, row.asked_at), Infinity)
  return {
    series: new Set(rows.map(({ series }) => series)).size,
    windows: rows.length,
    since: rows.length === 0 ? null : formatInstant(since),
  }
}

function verifiedOf(ledger: Ledger): VerifiedFact {
  const { last_at, ...counts } = verifiedTotals(ledger)
  return { ...counts, last_at: last_at === null ? null : formatMillis(last_at) }
}

/** Locks of running jobs; a backup takes that of `publish`. */
export const jobLocks = ['metrics', 'registry', 'verify', 'watch', 'publish', 'pull'] as const

/**
 * Lists the jobs at work now. A lock is only touched if a job once wrote its name there, so that no starting job is
 * disturbed.
 */
async function runningJobs(root: string): Promise<string[]> {
  const running: string[] = []
  for (const lock of jobLocks) if ((await holderOf(root, lock)) !== undefined && isHeld(root, lock)) running.push(lock)
  return running
}

/** Whether a job is running; in a folder that cannot be written there is none. */
function isHeld(root: string, api: string): boolean {
  try {
    return !isFree(root, api)
  } catch {
    return false
  }
}

/** Counts the months of series that were lost with files and observed again, and their points; `waiting`: not yet. */
function countAgain(months: readonly ObservedAgain[]): ObservedAgainCounts {
  const again = months.filter(({ at }) => at !== null)
  const points = again.reduce((sum, observed) => sum + (observed.points ?? 0), 0)
  return { months: again.length, points, waiting: months.length - again.length }
}

/** Planned or actual cost of a run; each is null if it is not known. */
export interface RunCost {
  readonly requests: number | null
  readonly points: number | null
  readonly credits: number | null
}

/** A run as a status reports it. */
export interface RunFact {
  /** Id of the run. */
  readonly id: string
  /** What it did, such as `fetch`. */
  readonly job: string
  /** The command line; empty if it is not known. */
  readonly command: string
  /** When it began; null if it is not known. */
  readonly started_at: string | null
  /** How long it took; null while it runs, or if it was killed. */
  readonly seconds: number | null
  /** Why it ended early; null if it did not. */
  readonly stopped_by: string | null
  /** Planned `requests`, `points` and `credits`; null if not known. */
  readonly plan: RunCost
  /** Actual `requests`, `points` and `credits`; null if not known. */
  readonly actual: RunCost
}

/** Returns a run as a status reports it. */
export function runFact(run: StoredRun): RunFact {
  const { started_at, ended_at } = run
  return {
    id: run.id,
    job: run.job ?? 'unknown',
    command: run.command ?? '',
    started_at: started_at === null ? null : formatMillis(started_at),
    seconds: started_at === null || ended_at === null ? null : Math.round((ended_at - started_at) / 1000) / 1000,
    stopped_by: run.stopped_by,
    plan: costIn(run.plan),
    actual: costIn(run.actual, run),
  }
}

/** Reads the cost of a run from its plan or summary, else from the run itself; null if neither has it. */
function costIn(facts: Json, run?: StoredRun): RunCost {
  const knownFacts: { readonly [key: string]: unknown } =
    typeof facts === 'object' && facts !== null ? { ...facts } : {}
  const numberOf = (key: 'requests' | 'points' | 'credits'): number | null => {
    const value = knownFacts[key]
    return typeof value === 'number' ? value : (run?.[key] ?? null)
  }
  return { requests: numberOf('requests'), points: numberOf('points'), credits: numberOf('credits') }
}

/**
 * Finds the longest window without points that has points on both sides, and the series that begin later than they were
 * requested for.
 */
function holesIn(coverage: ReadonlyMap<string, readonly CoverageRow[]>): HolesFact {
  const gaps = [...coverage].flatMap(([id, rows]) => {
    const { metric, asset, interval } = readableSeries(id)
    return rows
      .filter(({ reason }) => reason === 'gap')
      .map(({ since, until }) => {
        const points = count(since, until, interval ?? unshownInterval)
        return { metric, asset, points, since: formatInstant(since), until: formatInstant(until) }
      })
  })
  const longest = gaps.reduce<GapFact | null>((most, gap) => (gap.points > (most?.points ?? 0) ? gap : most), null)
  const later = [...coverage.values()]
    .flat()
    .filter(({ reason }) => reason === beforeFirst)
    .flatMap((row) => beginsLater([row]))
  return { longest, later: later.length, begins: later[0] ?? null }
}
