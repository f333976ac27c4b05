import type { Catalogue } from '../catalog/catalogue.ts'
import type { CoverageRow, Json } from '../ledger/entry.ts'
import {
  countValueChanges,
  heldCoverage,
  heldSeries,
  heldStamps,
  type HeldViolation,
  heldViolations,
  heldWeekStart,
  isOnDisk,
  liveFiles,
  type Summary,
  summary,
} from '../ledger/held.ts'
import {
  type HeldRun,
  heldRuns,
  heldVerified,
  lastPublished,
  pendingSelections,
  requestsByOutcome,
  requestTotals,
  runAtWork,
  verifiedTotals,
} from '../ledger/held-runs.ts'
import type { Head, Ledger } from '../ledger/ledger.ts'
import { proveLive } from '../ledger/live.ts'
import { type ObservedAgain, observedAgain } from '../ledger/lost.ts'
import { atOneInstant } from '../ledger/row.ts'
import { holderOf, isFree } from '../store/lock.ts'
import { mirrorOf } from '../store/marker.ts'
import { notAsked, pendingAsks, selectedOf } from '../metrics/prepare.ts'
import { readRefusal } from '../ledger/refusals.ts'
import { type Refused, refusals } from '../ledger/violations.ts'
import type { CoverageCounts, RunCost, RunFact, Standing } from './page/standing.ts'
import type { Settings } from '../config/settings.ts'
import { day, floor, formatInstant, formatMillis, type Instant } from '../time.ts'
import { countIn, judgeSeries, lateOf, type SeriesStanding } from './freshness.ts'
import { registryState } from '../registry/state.ts'
import { isOpenFinding, type ListedFinding } from '../registry/accepted.ts'
import { findingsIfReadable } from './alarms.ts'
import { registryFacts, schemaChanges } from '../registry/status.ts'
import { type Held, heldArrivals } from './arrivals.ts'
import { judge } from './audit.ts'
import { holesIn } from './holes.ts'
import { type Judging, reasonsOf, trustOf } from './trust.ts'
import { bytesProblem } from '../ledger/commit.ts'

/** What a status is made of. */
export interface StatusInput {
  readonly settings: Settings
  readonly catalogue: Catalogue
  readonly now: Instant
  /** Whether all points are read to hold the rules against their arrivals; where they are few unless said. */
  readonly arrivals?: boolean
  /** How long a point may be due where no limit says more, and what has stopped is late, too; else as `--check` judges. */
  readonly patience?: number
}

/** So many points are read in a second or two. */
const fewPoints = 2_000_000

/** The standing of the lake together with the series it was judged from. */
export interface Judged {
  readonly standing: Standing
  readonly series: readonly SeriesStanding[]
  /** Null where they were not read. */
  readonly arrivals: readonly Held[] | null
  /** What verifies found in the registry; null where it cannot be read. */
  readonly findings: readonly ListedFinding[] | null
}

/** Whether the lake can be trusted now; only reads, also while a job writes. */
export async function readStanding(ledger: Ledger, input: StatusInput): Promise<Judged> {
  const files_damaged = await damagedFiles(ledger)
  return await atOneInstant(ledger, async () => await standingNow(ledger, input, files_damaged))
}

async function standingNow(ledger: Ledger, input: StatusInput, files_damaged: number): Promise<Judged> {
  proveLive(ledger)
  const { settings, catalogue, now } = input
  const head = ledger.head()
  const counts = summary(ledger)
  const coverage = heldCoverage(ledger)
  const verified = heldVerified(ledger)
  const series = judgeSeries(heldSeries(ledger).values(), coverage, verified, catalogue, now, heldWeekStart(ledger))
  const arrivals = await arrivalsFor(ledger, input, counts.points)
  const findings = await findingsIfReadable(ledger)
  const refused = refusals(ledger)
  const running = await runningJobs(ledger.root)
  const facts = {
    ...who(head),
    mirror_of: await mirrorOf(ledger.root),
    ...plain(counts, head),
    coverage: shareOf(countCoverage(series)),
    freshness: countFresh(series),
    verified: verifiedOf(ledger),
    schema_changes: countValueChanges(ledger),
    refused: refusedOf(refused),
    holes: holesIn(coverage),
    not_asked: await notAskedOf(ledger, input, coverage, running),
    oldest: oldestOf(ledger, coverage, refused, findings),
    published: lastPublished(ledger).map(({ at, ...rest }) => ({ ...rest, at: formatMillis(at) })),
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
      findings_accepted: findings && findings.filter(({ accepted_at }) => accepted_at !== null).length,
    },
    rules: arrivals && rulesOf(arrivals),
    stamps: heldStamps(ledger).length,
    files_damaged,
    observed_again: countAgain(observedAgain(ledger)),
    running,
    last_run: heldRuns(ledger, 1).map(runFact)[0] ?? null,
  }
  const reasons = reasonsOf(facts, now, { check: settings.check, late: lateCount(series, input) })
  return { standing: { ...facts, trust: trustOf(reasons), reasons }, series, arrivals, findings }
}

function lateCount(series: readonly SeriesStanding[], { settings, patience }: StatusInput): Judging['late'] {
  const { late, stopped } = lateOf(series, settings.check, patience ?? null)
  let [count, seconds] = [0, 0]
  for (const one of late) {
    count += one.series
    seconds = Math.max(seconds, one.seconds)
  }
  return { series: count, seconds, stopped: patience === undefined ? stopped : 0 }
}

/** What was spent since this UTC day began. */
function creditsOf(ledger: Ledger, now: Instant): number {
  return requestTotals(ledger, (floor(now, '24h') + day) * 1_000_000).day_credits
}

/** A damaged file takes this judgement away, not the status that has to say so. */
async function arrivalsFor(ledger: Ledger, input: StatusInput, points: number): Promise<readonly Held[] | null> {
  if (!(input.arrivals ?? points <= fewPoints)) return null
  return await heldArrivals(ledger, input.catalogue, () => true).catch(() => null)
}

function rulesOf(held: readonly Held[]): Standing['rules'] {
  const rows = held.map(({ endpoint, interval, rules, arrivals }) => judge(endpoint.path, interval, rules, arrivals))
  const imprecise = rows.filter(({ verdict }) => verdict === 'imprecise')
  return {
    disproved: rows.filter(({ verdict }) => verdict === 'disproved').length,
    imprecise: imprecise.length,
    imprecise_points: imprecise.reduce((sum, { ruled }) => sum + ruled, 0),
  }
}

function who({ provider }: Head): Pick<Standing, 'provider' | 'providers' | 'synthetic'> {
  const metrics = provider?.metrics ?? null
  const registry = provider?.registry ?? null
  return { provider: metrics ?? registry, providers: { metrics, registry }, synthetic: provider?.synthetic ?? false }
}

function plain(counts: Summary, head: Head) {
  const { findings, newest, ...rest } = counts
  return {
    ...rest,
    clock_findings: findings,
    newest: newest === null ? null : formatInstant(newest),
    committed_at: head.version === 0 ? null : formatMillis(head.committed_at),
  }
}

/** Intervals due, held and verified over all series. */
function countCoverage(series: readonly SeriesStanding[]): CoverageCounts {
  const counts = { due: 0, held: 0, verified: 0 }
  for (const { due, held, verified, interval } of series) {
    counts.due += countIn(due === null ? [] : [due], interval)
    counts.held += countIn(held, interval)
    counts.verified += countIn(verified, interval)
  }
  return counts
}

function shareOf(counts: CoverageCounts): Standing['coverage'] {
  const share = (part: number, whole: number) => (whole === 0 ? null : part / whole)
  return { ...counts, share: share(counts.held, counts.due), verified_share: share(counts.verified, counts.held) }
}

/** How far the newest points of these series are from what is due. */
export function countFresh(series: readonly SeriesStanding[]): Standing['freshness'] {
  const counts = { fresh: 0, awaited: 0, behind: 0, stopped: 0, overdue_seconds: 0 }
  for (const { fresh, overdue } of series) {
    if (fresh !== null) counts[fresh]++
    counts.overdue_seconds = Math.max(counts.overdue_seconds, overdue)
  }
  return counts
}

/** The series that have points and are refused, and those that were withdrawn. */
function refusedOf(all: readonly Refused[]): Standing['refused'] {
  const now = all.filter(({ withdrawn }) => !withdrawn)
  const gone = all.filter(({ withdrawn }) => withdrawn)
  const first = now.toSorted((a, b) => a.since - b.since)[0]
  const count = (some: readonly Refused[]): number => new Set(some.map(({ listed }) => listed.series)).size
  return {
    series: count(now),
    windows: now.reduce((sum, { rows }) => sum + rows.length, 0),
    since: first === undefined ? null : formatInstant(first.since),
    words: first?.words ?? null,
    withdrawn: count(gone),
    unaccepted: count(gone.filter(isOpen)),
  }
}

const isOpen = ({ listed }: Refused): boolean => listed.accepted_at === null

function oldestOf(
  ledger: Ledger,
  coverage: ReadonlyMap<string, readonly CoverageRow[]>,
  refused: readonly Refused[],
  findings: readonly ListedFinding[] | null,
): Standing['oldest'] {
  const rows = [...coverage.values()].flat()
  const failed = rows.filter(({ state, reason }) => state === 'failed' && readRefusal(reason)?.since === undefined)
  const oldest = (instants: readonly Instant[]): string | null =>
    instants.length === 0 ? null : formatInstant(instants.reduce((least, one) => Math.min(least, one)))
  const open = (findings ?? []).filter(isOpenFinding)
  const seen = heldViolations(ledger).filter(({ accepted_at, passed_at }) => accepted_at === null && passed_at === null)
  const found = (some: readonly HeldViolation[]): Instant[] =>
    some.map(({ offered_at }) => Math.floor(offered_at / 1_000_000))
  return {
    violations: oldest(found(seen.filter(({ incident }) => incident === null))),
    incidents: oldest(found(seen.filter(({ incident }) => incident !== null))),
    findings: oldest(open.map(({ found_at }) => Math.floor(found_at / 1_000_000))),
    withdrawn: oldest(refused.filter((one) => one.withdrawn && isOpen(one)).map(({ since }) => since)),
    failed: oldest(failed.map(({ asked_at }) => asked_at)),
    gaps: oldest(rows.filter(({ reason }) => reason === 'gap').map(({ since }) => since)),
  }
}

/** What runs planned and did not ask: what they put on record, and what those did not that were killed. */
async function notAskedOf(
  ledger: Ledger,
  input: StatusInput,
  coverage: ReadonlyMap<string, readonly CoverageRow[]>,
  running: readonly string[],
): Promise<Standing['not_asked']> {
  const told = [...coverage.values()].flat().filter(({ state }) => state === 'not asked')
  // Of a run that is at work nobody knows yet what it leaves over.
  const atWork = running.includes('metrics') ? runAtWork(ledger) : null
  const killed = pendingSelections(ledger, input.now, atWork).since
  const asks = killed === null ? [] : await pendingAsks(ledger, input, input.now, atWork)
  const at = Math.floor((killed ?? 0) / 1_000_000)
  const asked = { at: input.now, request: '', weekStart: input.settings.metrics.weekStart }
  const silent = notAsked(ledger, asks, new Map(), asked).flatMap((one) => one.coverage)
  const fresh = silent.filter(({ asked_at }) => asked_at === input.now).map((row) => ({ ...row, asked_at: at }))
  const rows = await selectedOf(ledger, input, [...told, ...fresh])
  const since = rows.reduce((least, row) => Math.min(least, row.asked_at), Infinity)
  return {
    series: new Set(rows.map(({ series }) => series)).size,
    windows: rows.length,
    since: rows.length === 0 ? null : formatInstant(since),
  }
}

function verifiedOf(ledger: Ledger): Standing['verified'] {
  const { last_at, ...counts } = verifiedTotals(ledger)
  return { ...counts, last_at: last_at === null ? null : formatMillis(last_at) }
}

/** The locks that jobs hold while they are at work; a backup holds that of `publish`. */
export const jobLocks = ['metrics', 'registry', 'verify', 'watch', 'publish', 'pull'] as const

/** The jobs at work now. A lock is only touched where somebody once said his name, so that no starting job is disturbed. */
async function runningJobs(root: string): Promise<string[]> {
  const running: string[] = []
  for (const lock of jobLocks) if ((await holderOf(root, lock)) !== undefined && isHeld(root, lock)) running.push(lock)
  return running
}

/** In a folder that cannot be written nobody is at work. */
function isHeld(root: string, api: string): boolean {
  try {
    return !isFree(root, api)
  } catch {
    return false
  }
}

/** Of what was lost with files: how many months of series were observed again, and of how many points; `waiting`: not yet. */
function countAgain(months: readonly ObservedAgain[]): Standing['observed_again'] {
  const again = months.filter(({ at }) => at !== null)
  const points = again.reduce((sum, one) => sum + (one.points ?? 0), 0)
  return { months: again.length, points, waiting: months.length - again.length }
}

/** How many live files are not where they should be, or not as long; the bytes themselves are not read. */
async function damagedFiles(ledger: Ledger): Promise<number> {
  let damaged = 0
  const live = new Map(liveFiles(ledger).map((file) => [file.path, file]))
  // A vacuum that is at work meanwhile says what goes before it takes that away.
  for (const file of live.values())
    if ((await bytesProblem(ledger.root, file, false)) && isOnDisk(ledger, file.path)) damaged++
  return damaged
}

/** A run as the status shows it. */
export function runFact(run: HeldRun): RunFact {
  const { started_at, ended_at } = run
  return {
    id: run.id,
    job: run.job ?? 'unknown',
    command: run.command ?? '',
    started_at: started_at === null ? null : formatMillis(started_at),
    seconds: started_at === null || ended_at === null ? null : Math.round((ended_at - started_at) / 1000) / 1000,
    stopped_by: run.stopped_by,
    plan: costIn(run.plan, { requests: null, points: null, credits: null }),
    actual: costIn(run.actual, run),
  }
}

/** What a plan or a summary tells of a cost, and else `otherwise`. */
function costIn(facts: Json, otherwise: RunCost): RunCost {
  const known: { readonly [key: string]: unknown } = typeof facts === 'object' && facts !== null ? { ...facts } : {}
  const numberOf = (key: 'requests' | 'points' | 'credits'): number | null => {
    const value = known[key]
    return typeof value === 'number' ? value : otherwise[key]
  }
  return { requests: numberOf('requests'), points: numberOf('points'), credits: numberOf('credits') }
}
