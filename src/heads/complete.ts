import { bytesOf, mega } from '../kinds.ts'
import { seriesNumber } from '../ledger/apply.ts'
import { commit, type CommitDeps, type RewriteDeps } from '../ledger/commit.ts'
import type { Progress } from '../ledger/entry.ts'
import { type HeldFile, type HeldSeries, heldSeries, liveFiles, storedInterval } from '../ledger/held.ts'
import type { Ledger } from '../ledger/ledger.ts'
import { heldMembers } from '../ledger/state-tree.ts'
import { heldMonths, monthsBetween } from '../ledger/month-digests.ts'
import { chained } from '../points/chains.ts'
import { identityOf } from '../points/conversion.ts'
import { namedSql } from '../points/files.ts'
import { monthSums, seriesKey } from '../points/month-sums.ts'
import { Engine, quote } from '../store/engine.ts'
import { publishedForm, registryDays } from '../registry/digests.ts'
import { inLake, parseRegistryFile } from '../store/layout.ts'
import { identityColumns } from '../store/parquet.ts'

/** What the engine holds to read files at all, and for a point that it sorts: 170 bytes at most were seen. */
const readingBytes = 32 * mega
const pointBytes = 224
/** And so many points at most are told by one version: what was told stays, wherever the rest is cut short. */
const mostPoints = 4_000_000

/** The series of which the ledger does not know the chain of every point: earlier programs told none, or of lines. */
function unchained(ledger: Ledger): string[] {
  const known = "coalesce((SELECT sum(points) FILTER (WHERE chain LIKE 'b%') FROM digests WHERE series = n), 0)"
  const rows = ledger
    .statement(`SELECT id FROM series WHERE points > 0 AND points <> ${known} ORDER BY metric, interval, n`)
    .all()
  return rows.map(({ id }) => String(id))
}

/**
 * Reads the points of a lake of an earlier layout once, so that the state tells all: versions without data files, each of
 * as many series as the engine (`memoryLimit`: what it may count) can hold together. What was told before it was cut
 * short is not read again.
 */
export async function completeState(
  ledger: Ledger,
  deps: CommitDeps & Partial<Pick<RewriteDeps, 'signal'>>,
  memoryLimit?: string,
): Promise<void> {
  const { provider } = ledger.head()
  const lacking = provider === null ? [] : unchained(ledger)
  const untold = provider !== null && !isRegistryTold(ledger)
  if (provider === null || (lacking.length === 0 && !untold)) return
  using engine = await Engine.open(':memory:', { memoryLimit })
  const [{ memory } = { memory: '' }] = await engine.rows<{ memory: string }>(
    `SELECT current_setting('memory_limit') AS memory`,
  )
  for (const block of blocksOf([...heldSeries(ledger, lacking).values()], bytesOf(memory) ?? 0)) {
    const draft = async ({ version }: { readonly version: number }) => {
      const progress = await chainless(ledger, engine, block)
      return progress.length === 0 ? null : { job: 'tree', run: `tree-${version}`, provider, progress }
    }
    if (deps.signal?.aborted !== true) await commit(ledger, draft, deps)
  }
  if (!untold) return
  const registry = async ({ version }: { readonly version: number }) => {
    return { job: 'tree', run: `tree-${version}`, provider, days: await registryDays(ledger, engine, {}) }
  }
  await commit(ledger, registry, deps)
}

/** Whether the state tells of all points and of the registry what a stranger can digest. */
export function isTold(ledger: Ledger): boolean {
  return unchained(ledger).length === 0 && isRegistryTold(ledger)
}

/** Whether the state tells the days of every table of the registry that has files. */
function isRegistryTold(ledger: Ledger): boolean {
  const told = new Map(heldMembers(ledger, 'registry'))
  return liveFiles(ledger).every(({ path, table }) => {
    const name = parseRegistryFile(path) && publishedForm(table)?.name
    return name === undefined || told.get(name)?.includes(' ') === true
  })
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
  yield block
}

/** What the ledger lacks of what files hold of these series: every month of which the chain is not known. */
async function chainless(ledger: Ledger, engine: Engine, block: readonly string[]): Promise<Progress[]> {
  const series = [...heldSeries(ledger, block).values()]
  const ids = new Map(series.map((one) => [seriesKey(one.metric, storedInterval(one), identityOf(one)), one.id]))
  const metrics = new Set(series.map(({ metric }) => metric))
  const files = liveFiles(ledger, { table: 'points' }).filter(({ metric }) => metric === null || metrics.has(metric))
  const sums = files.length === 0 ? [] : await monthSums(engine, sourceOf(ledger, files, series))
  const there = new Map(sums.map(({ months, ...one }) => [ids.get(seriesKey(one.metric, one.interval, one)), months]))
  return series.flatMap(({ id, first_t, last_t }): Progress[] => {
    const held = heldMonths(ledger, seriesNumber(ledger, id) ?? 0)
    const own = there.get(id)
    const change = monthsBetween(held, own ?? new Map<string, never>())
    const digests = [...(own?.keys() ?? [])].flatMap((month): [string, string][] => {
      const { points, digest } = change.get(month) ?? { points: 0, digest: '0'.repeat(16) }
      return change.has(month) || held.get(month)?.chain === undefined ? [[month, `${points} ${digest}`]] : []
    })
    if (digests.length === 0 || first_t === null || last_t === null) return []
    return [chained({ series: id, points: 0, first_t, last_t, digests: Object.fromEntries(digests) }, own)]
  })
}

/** The points of these series, for FROM: row groups of other metrics and assets are passed over. */
function sourceOf(ledger: Ledger, files: readonly HeldFile[], series: readonly HeldSeries[]): string {
  const among = (column: string, told: readonly string[]): string =>
    `${column} IN (${[...new Set(told)].map(quote).join(', ')})`
  const names = series.map((one) => {
    const identity = identityOf(one)
    return [one.metric, storedInterval(one), ...identityColumns.map((name) => identity[name] ?? '')].join('\u001F')
  })
  const parts = ['metric', '"interval"', ...identityColumns.map((name) => `coalesce(${name}, '')`)]
  const wanted = [
    ['metric', series.map(({ metric }) => metric)],
    ['asset', series.map(({ asset }) => asset)],
    [`concat_ws(chr(31), ${parts.join(', ')})`, names],
  ] as const
  const points = namedSql(files.map((file) => ({ ...file, path: inLake(ledger.root, file.path) })))
  return `(FROM ${points} WHERE ${wanted.map(([column, told]) => among(column, told)).join(' AND ')})`
}
