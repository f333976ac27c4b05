import type { Catalogue } from '../../catalog/catalogue.ts'
import type { CoverageRow, Json } from '../../lake/ledger/entry.ts'
import {
  countValueChanges,
  heldCoverage,
  heldSeries,
  heldStamps,
  type HeldViolation,
  heldViolations,
  heldWeekStart,
  summary,
} from '../../lake/ledger/index-queries.ts'
import {
  heldRuns,
  heldVerified,
  heldBackSnapshot,
  type HeldRunEnd,
  lastFetchEnd,
  lastPublished,
  pendingSelections,
  requestsByOutcome,
  requestTotals,
  runAtWork,
  verifiedTotals,
} from '../../lake/ledger/held-runs.ts'
import { lagsOfCopies, lagWords } from '../../lake/ledger/derived.ts'
import type { Head, Ledger } from '../../lake/ledger/ledger.ts'
import { proveLive } from '../../lake/ledger/live-digest.ts'
import { observedAgain, type ObservedAgain } from '../../lake/ledger/lost.ts'
import { holderOf, isFree } from '../../lake/store/lock.ts'
import { mirrorOf } from '../../lake/store/marker.ts'
import { notAsked, pendingAsks, selectedOf } from '../../sources/metrics/prepare.ts'
import { mappingRemedy, selectedPlaceholders, unmappedInWords } from '../../sources/metrics/unmapped.ts'
import { readRefusal } from '../../lake/ledger/refusals.ts'
import { refusals } from '../../lake/ledger/violations.ts'
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
import { beginsLater } from '../../sources/metrics/run-summary.ts'
import { ownPrefix } from '../../sources/points/own-rows.ts'
import { beforeFirst, isLost } from '../../lake/ledger/coverage.ts'
import { judgeSeries, type SeriesStanding, silentUserData } from './freshness.ts'
import { registryState } from '../../sources/registry/staging.ts'
import { isOpenFinding, type ListedFinding, listFindings } from '../../sources/registry/verify.ts'
import { registryFacts, schemaChanges } from '../../sources/registry/status.ts'
import { heldArrivals, type HeldArrivals, judgeRule } from '../../trust/availability-audit.ts'
import type { Window } from '../../base/windows.ts'

type Refused = ReturnType<typeof refusals>[number]

/** What a status is made of. */
export interface StatusInput {
  readonly settings: Settings
  readonly catalogue: Catalogue
  readonly now: Instant
  /** Whether all points are read to hold the rules against their arrivals; where they are few unless said. */
  readonly arrivals?: boolean
}

/** So many points are read in a second or two. */
const fewPoints = 2_000_000

/** Reads all that a status tells, with what it was told from: names of `facts` are relied on by scripts. */
export async function readStatusFacts(ledger: Ledger, input: StatusInput, files_damaged: number) {
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
    /** What the folder is a mirror of; null for a lake of its own. */
    mirror_of: await mirrorOf(ledger.root),
    ...plain(counts, head),
    /** Intervals since the first point of each series: due by the rule, held, and asked again with the same answer. */
    coverage: countCoverage(series),
    freshness: countFresh(series),
    verified: verifiedOf(ledger),
    /** Changes of the types of values, as the view of that name tells them of metrics. */
    schema_changes: countValueChanges(ledger),
    refused: refusedOf(refused),
    holes: holesIn(coverage),
    not_asked: await notAskedOf(ledger, input, coverage, running),
    oldest: oldestOf(ledger, coverage, refused, findings),
    /** The last publish to each destination: files that the tables named and that were gone, cut or changed there. */
    published: lastPublished(ledger).map(({ at, ...rest }) => ({ ...rest, at: formatMillis(at) })),
    /** Copies that are behind the lake: published tables, backups, or this mirror itself. */
    behind: (await lagsOfCopies(ledger)).map((lag) => ({
      thing: lag.thing.name,
      version: lag.thing.version,
      newest: lag.lake.newest,
      words: lagWords(lag),
      remedy: lag.thing.remedy,
    })),
    requests: {
      ...requestTotals(ledger, now * 1_000_000),
      /** From midnight UTC on. */
      credits_today: creditsOf(ledger, now),
      by_outcome: requestsByOutcome(ledger),
      /** What the configuration allows. */
      per_minute: settings.metrics.requestsPerMinute,
    },
    registry: {
      ...registryFacts(ledger),
      /** Open rows by table. */
      records: registryState(ledger).records,
      /** Null where they cannot be read, and so are `findings`. */
      schema_changes: await schemaChanges(ledger),
      /** What verifies found and nobody accepted nor a later state settled, and what was accepted. */
      findings: findings && findings.filter(isOpenFinding).length,
      findings_accepted: findings && findings.filter(({ accepted_at }) => accepted_at !== null).length,
    },
    /** Rules that the arrivals break, and the stored points that imprecise ones date; null where they were not read. */
    rules: arrivals && rulesOf(arrivals),
    stamps: heldStamps(ledger).length,
    /** Live files that are not there or have another size. */
    files_damaged,
    observed_again: countAgain(observedAgain(ledger)),
    /** Jobs that are at work now. */
    running,
    last_run: heldRuns(ledger, 1).map(runFact)[0] ?? null,
    /** How the last fetch ended, and the snapshot of the registry that waits for a person. */
    last_ends: lastEndsOf(ledger),
    /** What most failed windows failed of; null where none did. */
    failed_most: failedOf(coverage).most,
    /** User data whose points were lost with a file and have not been imported again. */
    lost_user_data: lostUserData(coverage),
    /** User data that no longer come as they used to. */
    user_data: silentUserData(ledger, catalogue, now).map(({ metric, last, rhythm }) => {
      return { metric, last_at: formatInstant(last), every_seconds: rhythm }
    }),
    /** Series that `select` names and that are never requested, because a name of theirs is a placeholder. */
    unmapped: await unmappedOf(ledger, input),
  }
  return { facts, series, arrivals, findings }
}

/** The end of a run as scripts read it. */
export interface RunEnd {
  readonly job: string
  /** When the run began, RFC 3339. */
  readonly at: string
  /** Why it ended early; null where it did not. */
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

/** Reads how the last runs ended that asked a provider. */
export function lastEndsOf(ledger: Ledger): LastEnds {
  const endOf = (end: HeldRunEnd | null): RunEnd | null => {
    if (end === null) return null
    const { started_at, ...rest } = end
    return { ...rest, at: formatMillis(started_at) }
  }
  return { fetch: endOf(lastFetchEnd(ledger)), held_back: endOf(heldBackSnapshot(ledger)) }
}

/** What verifies found in the registry; null where a file of it cannot be read, which other checks report. */
export async function findingsIfReadable(ledger: Ledger): Promise<readonly ListedFinding[] | null> {
  return await listFindings(ledger, null).catch(() => null)
}

/** Windows to which no usable answer came, those of refusals aside. */
interface FailedWindows {
  readonly count: number
  /** The most frequent reason. */
  readonly most: string | null
  /** When the oldest of them was requested, RFC 3339. */
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
  readonly series: number
  /** How many they are, and which; null where there are none. */
  readonly words: string | null
  /** What the configuration lacks; null where it lacks nothing. */
  readonly remedy: string | null
}

async function unmappedOf(ledger: Ledger, { settings, catalogue }: StatusInput): Promise<UnmappedSeries> {
  const names = await selectedPlaceholders({ settings, catalogue, selections: settings.select }, ledger)
  const series = new Set(names.flatMap((one) => one.series)).size
  return { series, words: series === 0 ? null : unmappedInWords(names), remedy: mappingRemedy(names) }
}

/** What was spent since this UTC day began. */
function creditsOf(ledger: Ledger, now: Instant): number {
  return requestTotals(ledger, (floor(now, '24h') + day) * 1_000_000).day_credits
}

/** A damaged file takes this judgement away, not the status that has to say so. */
async function arrivalsFor(ledger: Ledger, input: StatusInput, points: number) {
  if (!(input.arrivals ?? points <= fewPoints)) return null
  return await heldArrivals(ledger, input.catalogue, () => true).catch(() => null)
}

function rulesOf(held: readonly HeldArrivals[]) {
  const rows = held.map(({ endpoint, interval, rules, arrivals }) =>
    judgeRule(endpoint.path, interval, rules, arrivals),
  )
  const imprecise = rows.filter(({ verdict }) => verdict === 'imprecise')
  return {
    disproved: rows.filter(({ verdict }) => verdict === 'disproved').length,
    imprecise: imprecise.length,
    imprecise_points: imprecise.reduce((sum, { ruled }) => sum + ruled, 0),
  }
}

/** Who answered, as the lake wrote it down; null while nothing is committed. */
function who({ provider }: Head) {
  const metrics = provider?.metrics ?? null
  const registry = provider?.registry ?? null
  return { provider: metrics ?? registry, providers: { metrics, registry }, synthetic: provider?.synthetic ?? false }
}

function plain(counts: ReturnType<typeof summary>, head: Head) {
  const { findings, newest, ...rest } = counts
  return {
    ...rest,
    clock_findings: findings,
    /** The largest stored `t`, RFC 3339. */
    newest: newest === null ? null : formatInstant(newest),
    /** RFC 3339; null while there is no version. */
    committed_at: head.version === 0 ? null : formatMillis(head.committed_at),
  }
}

function countCoverage(series: readonly SeriesStanding[]) {
  const counts = { due: 0, held: 0, verified: 0 }
  for (const { due, held, verified, interval } of series) {
    counts.due += countIn(due === null ? [] : [due], interval)
    counts.held += countIn(held, interval)
    counts.verified += countIn(verified, interval)
  }
  const share = (part: number, whole: number) => (whole === 0 ? null : part / whole)
  return { ...counts, share: share(counts.held, counts.due), verified_share: share(counts.verified, counts.held) }
}

/** How many intervals the windows hold. */
function countIn(windows: readonly Window[], interval: Interval): number {
  let total = 0
  for (const window of windows) total += count(window.since, window.until, interval)
  return total
}

/** How far the newest points of these series are from what is due, and how long the most overdue unasked one has been due. */
export function countFresh(series: readonly SeriesStanding[]) {
  const counts = { fresh: 0, awaited: 0, behind: 0, stopped: 0, overdue_seconds: 0 }
  for (const { fresh, overdue } of series) {
    if (fresh !== null) counts[fresh]++
    counts.overdue_seconds = Math.max(counts.overdue_seconds, overdue)
  }
  return counts
}

/** Series that have points and are refused now (with their windows and the first refusal), and withdrawn ones. */
function refusedOf(all: readonly Refused[]) {
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
    /** Those of them of which nobody took note. */
    unaccepted: count(gone.filter(isOpen)),
  }
}

function lostUserData(coverage: ReadonlyMap<string, readonly CoverageRow[]>): string[] {
  const lost = [...coverage].filter(([, rows]) => rows.some(isLost)).map(([id]) => parseSeriesId(id)?.metric ?? '')
  return [...new Set(lost)].filter((metric) => metric.startsWith(ownPrefix)).toSorted()
}

const isOpen = ({ listed }: Refused): boolean => listed.accepted_at === null

/** Since when there is the oldest of what is counted: its `t` of gaps, else when it was seen. RFC 3339. */
function oldestOf(
  ledger: Ledger,
  coverage: ReadonlyMap<string, readonly CoverageRow[]>,
  refused: readonly Refused[],
  findings: readonly ListedFinding[] | null,
) {
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

/** What runs planned and did not ask, as far as it is selected now: what is on record, and what killed ones left over. */
async function notAskedOf(
  ledger: Ledger,
  input: StatusInput,
  coverage: ReadonlyMap<string, readonly CoverageRow[]>,
  running: readonly string[],
) {
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

function verifiedOf(ledger: Ledger) {
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
function countAgain(months: readonly ObservedAgain[]) {
  const again = months.filter(({ at }) => at !== null)
  const points = again.reduce((sum, one) => sum + (one.points ?? 0), 0)
  return { months: again.length, points, waiting: months.length - again.length }
}

/** Tells it of a run. */
export function runFact(run: ReturnType<typeof heldRuns>[number]) {
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

/** What a plan or a summary tells of a cost, else what the run does; null where nobody says. */
function costIn(facts: Json, run?: ReturnType<typeof heldRuns>[number]) {
  const known: { readonly [key: string]: unknown } = typeof facts === 'object' && facts !== null ? { ...facts } : {}
  const numberOf = (key: 'requests' | 'points' | 'credits'): number | null => {
    const value = known[key]
    return typeof value === 'number' ? value : (run?.[key] ?? null)
  }
  return { requests: numberOf('requests'), points: numberOf('points'), credits: numberOf('credits') }
}

/** The longest window without points that has points on both sides, and the series that begin later than they were asked for. */
function holesIn(coverage: ReadonlyMap<string, readonly CoverageRow[]>) {
  const gaps = [...coverage].flatMap(([id, rows]) => {
    const { metric, asset, interval } = readableSeries(id)
    return rows
      .filter(({ reason }) => reason === 'gap')
      .map(({ since, until }) => {
        const points = count(since, until, interval ?? unshownInterval)
        return { metric, asset, points, since: formatInstant(since), until: formatInstant(until) }
      })
  })
  const longest = gaps.reduce<(typeof gaps)[number] | null>(
    (most, one) => (one.points > (most?.points ?? 0) ? one : most),
    null,
  )
  const later = [...coverage.values()]
    .flat()
    .filter(({ reason }) => reason === beforeFirst)
    .flatMap((row) => beginsLater([row]))
  return { longest, later: later.length, begins: later[0] ?? null }
}
