import type { Catalogue } from '../catalog/catalogue.ts'
import { expand, type Selection, type Wanted } from '../catalog/series.ts'
import { requestTotals } from '../ledger/held-runs.ts'
import { heldAnswers } from '../ledger/held.ts'
import { Ledger } from '../ledger/ledger.ts'
import { withListedAssets } from '../metrics/assets.ts'
import type { Held } from '../metrics/plan.ts'
import { registryFacts } from '../registry/status.ts'
import { type HeldArrivals, heldArrivals } from '../report/arrivals.ts'
import { judgeRule } from '../report/audit.ts'
import { isBegun } from '../store/begin.ts'
import { day, type Instant, parseDuration, parseInstant } from '../time.ts'
import { readManifest } from '../views/manifest.ts'
import type { Learnt } from './due.ts'

/** What a lake says of the wanted series. */
export interface LakeNow {
  readonly version: number
  /** Of the newest entry: what the versions say is the same where this is; null before the first. */
  readonly digest: string | null
  readonly wanted: readonly Wanted[]
  readonly held: ReadonlyMap<string, Held>
  /** When the feed of the registry was last read to its tail; null where it never was. */
  readonly registryPolled: Instant | null
  /** The version that the views tell of; 0 where there are none. */
  readonly viewsVersion: number
  /** Credits of all jobs since the instant that was asked for. */
  readonly spentToday: number
}

/**
 * The series of the selections, and what is held of them; a lake that is not there yet holds nothing. What an earlier look
 * with the same selections read of the same version is taken from it: a watch looks before each of its turns.
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
  const wanted = same?.wanted ?? expand(catalogue, await withListedAssets(selections, ledger))
  const nothing = { version, digest, wanted, registryPolled: null, viewsVersion: 0, spentToday: 0 }
  if (ledger === null) return { ...nothing, held: new Map<string, Held>() }
  const { feed_at } = registryFacts(ledger)
  const registryPolled = feed_at === null ? null : (parseInstant(feed_at) ?? null)
  return {
    ...nothing,
    held: same?.held ?? heldAnswers(ledger),
    registryPolled,
    viewsVersion: (await readManifest(root, []))?.version ?? 0,
    spentToday: requestTotals(ledger, (dayBegin + day) * 1_000_000).day_credits,
  }
}

/** How the points of the wanted series arrived so far; reads every point that is held of them. */
export async function lagsNow(
  root: string,
  catalogue: Catalogue,
  wanted: readonly Wanted[],
): Promise<ReadonlyMap<string, Learnt>> {
  if (!isBegun(root)) return new Map()
  using ledger = await Ledger.openToRead(root)
  const paths = new Set(wanted.map(({ endpoint }) => endpoint.path))
  return await learntLags(ledger, catalogue, (path) => paths.has(path))
}

/** The lags that the lake has seen of the wanted paths, by `path interval`: what `audit availability` measures. */
async function learntLags(
  ledger: Ledger,
  catalogue: Catalogue,
  wanted: (path: string) => boolean,
): Promise<Map<string, Learnt>> {
  const held = await heldArrivals(ledger, catalogue, wanted)
  return new Map(held.map((own) => [`${own.endpoint.path} ${own.interval}`, learntOf(own)]))
}

/**
 * Where the provider tells of most points when they were computed, their quantiles; else what the rule would have to be
 * where the arrivals disprove it. Points that were always there in time say nothing beyond the rule.
 */
export function learntOf({ endpoint, interval, rules, arrivals }: HeldArrivals): Learnt {
  const { observations, watched, proposed_lag } = judgeRule(endpoint.path, interval, rules, arrivals)
  const { p05, p50, p95 } = arrivals
  const all = observations + watched
  if (observations >= watched && p05 !== null && p50 !== null && p95 !== null)
    return { observations: all, lag: { early: p05, usual: p50, late: p95 } }
  const late = proposed_lag === null ? undefined : parseDuration(proposed_lag)
  return { observations: all, lag: late === undefined ? null : { early: late, usual: late, late } }
}
