import type { Catalogue } from '../catalog/catalogue.ts'
import { expand, type Selection, type Wanted } from '../catalog/series.ts'
import { heldAnswers } from '../ledger/held.ts'
import { requestTotals } from '../ledger/held-runs.ts'
import { Ledger } from '../ledger/ledger.ts'
import { withListedAssets } from '../metrics/assets.ts'
import type { Held } from '../metrics/plan.ts'
import { isBegun } from '../store/begin.ts'
import { registryFacts } from '../registry/status.ts'
import { day, type Instant, parseInstant } from '../time.ts'
import { readManifest } from '../views/manifest.ts'
import type { Learnt } from './due.ts'
import { learntLags } from './learnt.ts'

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
