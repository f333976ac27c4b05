import type { Catalogue } from '../catalog/catalogue.ts'
import type { Selection, Wanted } from '../catalog/series.ts'
import type { Settings } from '../config/settings.ts'
import { LakeError } from '../errors.ts'
import type { RewriteDeps } from '../ledger/commit.ts'
import type { AskingDeps, BesideDeps } from '../ledger/connection.ts'
import type { JobDeps, RunEnd } from '../ledger/job.ts'
import { fetchSeries } from '../metrics/fetch.ts'
import { askLagStats, type LagHint } from '../metrics/lag-stats.ts'
import { type IngestSummary, verdict } from '../metrics/tally.ts'
import { registrySync } from '../registry/snapshot-and-sync.ts'
import { verdictOf } from '../registry/run.ts'
import { day, type Instant, parseInstant } from '../time.ts'
import { mergeDue, mergeVerdict } from '../upkeep/compact.ts'
import { buildViews } from '../views/build.ts'
import { enough, type Learnt } from './due.ts'
import { type LakeNow, lagsNow, lakeNow } from './lake.ts'

/** What came of asking an API. */
export interface PollOutcome {
  readonly version: number
  readonly requests: number
  /** New points, or events of the registry's feed. */
  readonly brought: number
  /** Whether it was ended early, by whatever but the budget; `resumeAt` where the provider says when to come back. */
  readonly cut: boolean
  readonly resumeAt: Instant | null
  /** Whether all that was asked failed. */
  readonly inVain: boolean
  /** What the command would have ended with. */
  readonly error: LakeError | null
}

/** What a look at the lake shows. */
export interface Look extends LakeNow {
  readonly watchesRegistry: boolean
}

/** What a watch has done, by the jobs that there are. */
export interface WatchJobs {
  /** The lake as it is now, and what was spent since the day began. */
  look(dayBegin: Instant): Promise<Look>
  lags(wanted: readonly Wanted[]): Promise<ReadonlyMap<string, Learnt>>
  fetch(series: ReadonlySet<string>, credits: number | null): Promise<PollOutcome>
  sync(): Promise<PollOutcome>
  /** Merges what is due, makes the views and publishes; gives the version that they tell of. */
  tidy(): Promise<number>
}

/** Whose lake is watched, and what of it. */
export interface JobsInput {
  readonly settings: Settings
  readonly catalogue: Catalogue
  readonly selections: readonly Selection[]
  readonly watches: { readonly metrics: boolean; readonly registry: boolean }
  /** What follows when the views are made; null: nothing. */
  readonly publish: (() => Promise<void>) | null
}

/** The world behind one job, made anew for each: its clock begins with the wall clock of that moment. */
type JobWorld = (command: string) => Omit<AskingDeps & RewriteDeps & BesideDeps, 'atEnd'>

/** The jobs on a real lake. */
export function jobsOn(input: JobsInput, world: JobWorld): WatchJobs {
  const { settings, catalogue, selections, watches } = input
  const root = settings.data
  const own = watches.metrics ? selections : []
  const hinted = hintsOf({ settings, catalogue }, world)
  let seen: LakeNow | null = null
  const common = { settings, catalogue, maxRequests: null, providerMoved: false, gapsOnly: false } as const
  return {
    look: async (dayBegin) => {
      seen = await lakeNow(root, catalogue, own, dayBegin, seen)
      return { ...seen, watchesRegistry: watches.registry }
    },
    lags: async (wanted) => {
      const arrived = await lagsNow(root, catalogue, wanted)
      const unsure = wanted.filter(({ endpoint, series }) => {
        return (arrived.get(`${endpoint.path} ${series.interval}`)?.observations ?? 0) < enough
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
      const { events: brought, stopped_by } = summary
      return { ...askedOf(summary), brought, cut: stopped_by !== null, inVain: false, error: verdictOf(summary) }
    },
    tidy: async () => await tidied(input, world('watch')),
  }
}

/** What the provider tells of the lags of these series; asked for once a day. */
function hintsOf(
  provider: Pick<JobsInput, 'settings' | 'catalogue'>,
  world: JobWorld,
): (wanted: readonly Wanted[]) => Promise<ReadonlyMap<string, LagHint>> {
  let known: ReadonlyMap<string, LagHint> = new Map()
  let askedAt = Number.NEGATIVE_INFINITY
  return async (wanted) => {
    const deps = world('watch')
    if (wanted.length === 0 || Math.abs(deps.now() - askedAt) < day * 1000) return known
    askedAt = deps.now()
    try {
      known = await askLagStats(provider, wanted, deps)
    } catch (error) {
      // Nobody waits for a hint; what stands in the way of asking stands in the way of fetching, too.
      if (!(error instanceof LakeError)) throw error
    }
    return known
  }
}

function withHints(
  seen: ReadonlyMap<string, Learnt>,
  unsure: readonly Wanted[],
  hints: ReadonlyMap<string, LagHint>,
): ReadonlyMap<string, Learnt> {
  const merged = new Map(seen)
  for (const { endpoint, series } of unsure) {
    const told = hints.get(endpoint.path)
    const key = `${endpoint.path} ${series.interval}`
    if (told !== undefined) merged.set(key, { ...(seen.get(key) ?? { observations: 0, lag: null }), told })
  }
  return merged
}

function askedOf({ version, requests, resume_at }: Pick<IngestSummary, 'version' | 'requests' | 'resume_at'>) {
  return { version, requests, resumeAt: resume_at === null ? null : (parseInstant(resume_at) ?? null) }
}

async function tidied({ settings, catalogue, publish }: JobsInput, deps: RewriteDeps & JobDeps): Promise<number> {
  const atEnd = async ({ ledger }: RunEnd): Promise<void> => {
    if (ledger.head().version > 0) await buildViews(ledger, { catalogue, deps })
  }
  const done = await mergeDue(settings.data, { ...deps, atEnd })
  const error = mergeVerdict(done)
  if (error !== null) throw error
  await publish?.()
  return done.version
}
