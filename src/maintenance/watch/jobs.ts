import type { Catalogue } from '../../catalog/catalogue.ts'
import { withNames } from '../../catalog/names.ts'
import { expand, type Selection, type Wanted } from '../../catalog/series.ts'
import { requestTotals } from '../../lake/ledger/run-queries.ts'
import { storedAnswers } from '../../lake/ledger/index-queries.ts'
import { Ledger } from '../../lake/ledger/ledger.ts'
import { withListedAssets } from '../../sources/metrics/assets.ts'
import { recordedNames } from '../../sources/metrics/recorded-names.ts'
import { isKnownSelection, unnamedSelections } from '../../sources/metrics/names.ts'
import type { Held } from '../../sources/metrics/plan.ts'
import { registryFacts } from '../../sources/registry/status.ts'
import { storedArrivals, type StoredArrivals, judgeRule } from '../../trust/availability-audit.ts'
import { isBegun } from '../../lake/store/new-lake.ts'
import { day, type Instant, parseDuration, parseInstant } from '../../base/time.ts'
import { readManifest } from '../../query/views/manifest.ts'
import { minArrivalsForLag, type LearntArrivals } from './next-points.ts'
import type { Settings } from '../../catalog/settings.ts'
import { LakeError } from '../../base/errors.ts'
import type { RewriteDeps } from '../../lake/ledger/commit.ts'
import type { AskingDeps, BesideDeps } from '../../sources/http/connection.ts'
import type { JobDeps, RunEnd } from '../../lake/ledger/job.ts'
import { fetchSeries } from '../../sources/metrics/fetch.ts'
import { askLagStats, type LagStatistics } from '../../sources/metrics/lag-stats.ts'
import { type IngestSummary, verdict } from '../../sources/metrics/run-summary.ts'
import { registrySync } from '../../sources/registry/snapshot-and-sync.ts'
import { verdictOf } from '../../sources/registry/run.ts'
import { mergeDue, mergeVerdict } from '../upkeep/merge-jobs.ts'
import { buildViews } from '../../query/views/build.ts'

/** State of a lake for the wanted series. */
interface LakeNow {
  readonly version: number
  /** Digest of the newest entry: if it is equal, so is the content of the versions; null before the first. */
  readonly digest: string | null
  readonly wanted: readonly Wanted[]
  readonly held: ReadonlyMap<string, Held>
  /** Time when the feed of the registry was last read to its tail; null if it never was. */
  readonly registryPolled: Instant | null
  /** Version that the views show; 0 if there are none. */
  readonly viewsVersion: number
  /** Credits of all jobs since the requested instant. */
  readonly spentToday: number
}

/**
 * Reads the series of the selections and their stored points; a lake that does not exist yet has none. What an earlier
 * look with the same selections read of the same version is reused: a watch looks before each of its steps.
 */
export async function lakeNow(
  root: string,
  catalogue: Catalogue,
  selections: readonly Selection[],
  dayBegin: Instant,
  earlier: LakeNow | null = null,
): Promise<LakeNow> {
  using ledger = isBegun(root) ? await Ledger.openToRead(root) : null
  const { version, digest } = ledger?.head() ?? { version: 0, digest: null }
  const same = earlier?.version === version && earlier.digest === digest ? earlier : null
  const wantedSeries = same?.wanted ?? expandNamed(catalogue, await withListedAssets(selections, ledger), ledger)
  const nothing = { version, digest, wanted: wantedSeries, registryPolled: null, viewsVersion: 0, spentToday: 0 }
  if (ledger === null) return { ...nothing, held: new Map<string, Held>() }
  const { feed_at } = registryFacts(ledger)
  const registryPolled = feed_at === null ? null : (parseInstant(feed_at) ?? null)
  return {
    ...nothing,
    held: same?.held ?? storedAnswers(ledger),
    registryPolled,
    viewsVersion: (await readManifest(root, []))?.version ?? 0,
    spentToday: requestTotals(ledger, (dayBegin + day) * 1_000_000).day_credits,
  }
}

/** Expands the series of the selections in the provider's own names, as far as the lake has recorded them by now. */
function expandNamed(catalogue: Catalogue, selections: readonly Selection[], ledger: Ledger | null): readonly Wanted[] {
  const named = ledger === null ? catalogue : withNames(catalogue, recordedNames(ledger))
  // Until a name is known, its path represents it: the fetch that is due then learns the name.
  const expandable = selections.map((selection) =>
    isKnownSelection(named, selection) ? [selection] : unnamedSelections(named, [selection]),
  )
  return expand(named, expandable.flat())
}

/** Measures how the points of the wanted series arrived so far; reads every stored point of them. */
export async function lagsNow(
  root: string,
  catalogue: Catalogue,
  wanted: readonly Wanted[],
): Promise<ReadonlyMap<string, LearntArrivals>> {
  if (!isBegun(root)) return new Map()
  using ledger = await Ledger.openToRead(root)
  const paths = new Set(wanted.map(({ endpoint }) => endpoint.path))
  return await learntLags(ledger, catalogue, (path) => paths.has(path))
}

/** Reads the observed lags of the wanted paths, by `path interval`: what `audit availability` measures. */
async function learntLags(
  ledger: Ledger,
  catalogue: Catalogue,
  wanted: (path: string) => boolean,
): Promise<Map<string, LearntArrivals>> {
  const arrivals = await storedArrivals(ledger, withNames(catalogue, recordedNames(ledger)), wanted)
  return new Map(arrivals.map((series) => [`${series.endpoint.path} ${series.interval}`, learntOf(series)]))
}

/**
 * Derives lags from arrivals: their quantiles, if the provider reports for most points when they were computed; else
 * the rule that the arrivals would require if they contradict it. Points that always came in time add nothing to the
 * rule.
 */
export function learntOf({ endpoint, interval, rules, arrivals }: StoredArrivals): LearntArrivals {
  const { observations, watched, proposed_lag } = judgeRule(endpoint.path, interval, rules, arrivals)
  const { p05, p50, p95 } = arrivals
  const all = observations + watched
  if (observations >= watched && p05 !== null && p50 !== null && p95 !== null)
    return { observations: all, lag: { early: p05, usual: p50, late: p95 } }
  const late = proposed_lag === null ? undefined : parseDuration(proposed_lag)
  return { observations: all, lag: late === undefined ? null : { early: late, usual: late, late } }
}

/** Outcome of asking an API. */
interface PollOutcome {
  readonly version: number
  readonly requests: number
  /** New points, or events of the registry's feed. */
  readonly brought: number
  /** Whether it was ended early, by whatever but the budget; `resumeAt` where the provider says when to come back. */
  readonly cut: boolean
  readonly resumeAt: Instant | null
  /** Whether every request failed. */
  readonly inVain: boolean
  /** Error with which the command would have ended; null if none. */
  readonly error: LakeError | null
}

/** State of the lake at one look. */
export interface LakeLook extends LakeNow {
  /** Whether the registry is watched. */
  readonly watchesRegistry: boolean
  /** Whether a value of a feature is due that was not tried yet. */
  readonly featuresDue?: boolean
}

/** Jobs of a watch. */
export interface WatchJobs {
  /** Reads the current lake, and the credits spent since the day began. */
  look(dayBegin: Instant): Promise<LakeLook>
  lags(wanted: readonly Wanted[]): Promise<ReadonlyMap<string, LearntArrivals>>
  fetch(series: ReadonlySet<string>, credits: number | null): Promise<PollOutcome>
  sync(): Promise<PollOutcome>
  /** Computes features, merges what is due, makes the views and publishes; returns the version that they show. */
  tidy(): Promise<number>
}

/** Publishes the tables, after the views were made. */
export type PublishJob = () => Promise<void>

/** Lake to watch, and its selections. */
interface JobsInput {
  readonly settings: Settings
  readonly catalogue: Catalogue
  readonly selections: readonly Selection[]
  readonly watches: { readonly metrics: boolean; readonly registry: boolean }
  /** The features that are declared. */
  readonly features?: { readonly due: () => Promise<boolean>; readonly bring: () => Promise<void> } | null
  /** Job that follows when the views are made; null: none. */
  readonly publish: PublishJob | null
}

/** Builds the dependencies of one job, anew for each: its clock begins with the wall clock of that moment. */
type JobWorld = (command: string) => Omit<AskingDeps & RewriteDeps & BesideDeps, 'atEnd'>

/** Builds the jobs on a real lake. */
export function jobsOn(input: JobsInput, world: JobWorld): WatchJobs {
  const { settings, catalogue, selections, watches } = input
  const root = settings.data
  const metricSelections = watches.metrics ? selections : []
  const hinted = hintsOf({ settings, catalogue }, world)
  let lastSeen: LakeNow | null = null
  const common = { settings, catalogue, maxRequests: null, providerMoved: false, gapsOnly: false } as const
  return {
    look: async (dayBegin) => {
      lastSeen = await lakeNow(root, catalogue, metricSelections, dayBegin, lastSeen)
      const featuresDue = (await input.features?.due()) ?? false
      return { ...lastSeen, watchesRegistry: watches.registry, featuresDue }
    },
    lags: async (wanted) => {
      const arrived = await lagsNow(root, catalogue, wanted)
      const unsure = wanted.filter(({ endpoint, series }) => {
        return (arrived.get(`${endpoint.path} ${series.interval}`)?.observations ?? 0) < minArrivalsForLag
      })
      return withHints(arrived, unsure, await hinted(unsure))
    },
    fetch: async (only, budget) => {
      const deps = { ...world('watch'), onEvent: () => undefined }
      const now = Math.floor(deps.now() / 1000)
      const summary = await fetchSeries({ ...common, selections, only, eager: true, budget, now }, deps)
      const { covered, empty, unsupported, failed } = summary.windows
      const cut = summary.stopped_by !== null && summary.stopped_by !== 'budget'
      const inVain = failed > 0 && covered + empty + unsupported === 0
      return { ...askedOf(summary), brought: summary.points_added, cut, inVain, error: verdict(summary) }
    },
    sync: async () => {
      const deps = { ...world('watch'), onEvent: () => undefined }
      const summary = await registrySync({ ...common, acceptShrink: false }, deps)
      const { events: eventCount, stopped_by } = summary
      return {
        ...askedOf(summary),
        brought: eventCount,
        cut: stopped_by !== null,
        inVain: false,
        error: verdictOf(summary),
      }
    },
    tidy: async () => await tidied(input, world('watch')),
  }
}

/** Requests the lags that the provider reports for these series, once a day. */
function hintsOf(
  provider: Pick<JobsInput, 'settings' | 'catalogue'>,
  world: JobWorld,
): (wanted: readonly Wanted[]) => Promise<ReadonlyMap<string, LagStatistics>> {
  let knownLags: ReadonlyMap<string, LagStatistics> = new Map()
  let askedAt = Number.NEGATIVE_INFINITY
  return async (wantedSeries) => {
    const deps = world('watch')
    if (wantedSeries.length === 0 || Math.abs(deps.now() - askedAt) < day * 1000) return knownLags
    askedAt = deps.now()
    try {
      knownLags = await askLagStats(provider, wantedSeries, deps)
    } catch (error) {
      // A hint is optional; an error that prevents the request prevents the fetch, too.
      if (!(error instanceof LakeError)) throw error
    }
    return knownLags
  }
}

function withHints(
  previous: ReadonlyMap<string, LearntArrivals>,
  unsure: readonly Wanted[],
  hints: ReadonlyMap<string, LagStatistics>,
) {
  const merged = new Map(previous)
  for (const { endpoint, series } of unsure) {
    const statistics = hints.get(endpoint.path)
    const ofInterval = series.interval === null ? undefined : statistics?.byInterval.get(series.interval)
    const lagStats = ofInterval ?? statistics?.overall ?? undefined
    const key = `${endpoint.path} ${series.interval}`
    if (lagStats !== undefined)
      merged.set(key, { ...(previous.get(key) ?? { observations: 0, lag: null }), reportedLags: lagStats })
  }
  return merged
}

function askedOf({ version, requests, resume_at }: Pick<IngestSummary, 'version' | 'requests' | 'resume_at'>) {
  return { version, requests, resumeAt: resume_at === null ? null : (parseInstant(resume_at) ?? null) }
}

async function tidied(input: JobsInput, deps: RewriteDeps & JobDeps): Promise<number> {
  const { settings, catalogue, features, publish } = input
  await features?.bring()
  const atEnd = async ({ ledger }: RunEnd): Promise<void> => {
    if (ledger.head().version > 0) await buildViews(ledger, { catalogue, deps })
  }
  const done = await mergeDue(settings.data, { ...deps, atEnd })
  const error = mergeVerdict(done)
  if (error !== null) throw error
  await publish?.()
  return done.version
}
