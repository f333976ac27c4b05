import { bytesOf, mega } from '../../base/option-kinds.ts'
import { commit, type CommitDeps, type Draft, type RewriteDeps } from '../../lake/ledger/commit.ts'
import { type HeldSeries, heldSeries } from '../../lake/ledger/index-queries.ts'
import type { Ledger } from '../../lake/ledger/ledger.ts'
import { unmoved, withMonths } from '../../sources/points/chains.ts'
import { Engine } from '../../lake/store/engine.ts'
import { isRegistryTold, registryDays } from '../../sources/registry/digests.ts'
import { engineMemory } from '../../lake/store/memory.ts'

/** What the engine holds to read files at all, and for a point that it sorts: 170 bytes at most were seen. */
const readingBytes = 32 * mega
const pointBytes = 224
/** Most points that one version records: recorded points stay, even if the rest is cut short. */
const mostPoints = 4_000_000

/** The series of which the ledger does not know the chain of every point, such as those of a journal that was made anew. */
function seriesWithoutChain(ledger: Ledger): string[] {
  const known = "coalesce((SELECT sum(points) FILTER (WHERE chain LIKE 'b%') FROM digests WHERE series = n), 0)"
  const rows = ledger
    .statement(`SELECT id FROM series WHERE points > 0 AND points <> ${known} ORDER BY metric, interval, n`)
    .all()
  return rows.map(({ id }) => String(id))
}

/**
 * Reads the points whose chains the ledger does not know once, so that the state tells all: versions without data files, each of
 * as many series as the engine (`memoryLimit`: what it may count) can hold together. What was told before it was cut
 * short is not read again.
 */
export async function completeState(
  ledger: Ledger,
  deps: CommitDeps & Partial<Pick<RewriteDeps, 'signal'>>,
  memoryLimit = engineMemory(),
): Promise<void> {
  const { provider } = ledger.head()
  if (provider === null || isStateComplete(ledger)) return
  using engine = await Engine.open(':memory:', { memoryLimit })
  const tell = async (part: () => Promise<Partial<Draft>>): Promise<void> => {
    const draft = async ({ version }: { readonly version: number }) => {
      return { job: 'tree', run: `tree-${version}`, provider, ...(await part()) }
    }
    await commit(ledger, draft, deps)
  }
  for (const block of blocksOf(
    [...heldSeries(ledger, seriesWithoutChain(ledger)).values()],
    bytesOf(memoryLimit) ?? 0,
  )) {
    const own = unmoved(heldSeries(ledger, block).values())
    const change = { add: [], remove: [] }
    if (deps.signal?.aborted !== true)
      await tell(async () => ({ progress: await withMonths(ledger, engine, own, change) }))
  }
  if (!isRegistryTold(ledger)) await tell(async () => ({ days: await registryDays(ledger, engine, {}) }))
}

/** Whether the state tells of all points and of the registry what a stranger can digest. */
export function isStateComplete(ledger: Ledger): boolean {
  return seriesWithoutChain(ledger).length === 0 && isRegistryTold(ledger)
}

/** Series that are read together, one at least: neighbours, for those of one partition stand in the same files. */
function* blocksOf(series: readonly HeldSeries[], memory: number): Generator<string[]> {
  const most = Math.min(mostPoints, (memory - readingBytes) / pointBytes)
  let [block, points]: [string[], number] = [[], 0]
  for (const one of series) {
    if (block.length > 0 && points + one.points > most) {
      yield block
      ;[block, points] = [[], 0]
    }
    block.push(one.id)
    points += one.points
  }
  if (block.length > 0) yield block
}
