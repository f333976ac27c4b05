import { sha256 } from '../ledger/entry.ts'
import type { FileEntry, Progress } from '../ledger/entry.ts'
import { heldSeries, liveFiles, storedInterval } from '../ledger/held.ts'
import type { Ledger } from '../ledger/ledger.ts'
import { heldMonths } from '../ledger/month-digests.ts'
import { seriesNumber } from '../ledger/apply.ts'
import type { Engine } from '../store/engine.ts'
import { inLake } from '../store/layout.ts'
import { type Identity, identityColumns } from '../store/parquet.ts'
import type { Micros } from '../time.ts'
import { identityOf } from './conversion.ts'
import { namedSql } from './files.ts'
import { digestShift, type PointsFile, seriesKey } from './month-sums.ts'
import { statement } from './sql.ts'

/*
 * The chain of a month: what each commit brought to it, in the order of commits, hashed one after the other. It follows
 * from the points alone, whatever files they stand in, and a commit that adds to it needs none of the points before.
 */

/** What one commit brought to a month: when (milliseconds, as published), how many rows, and SHA-256 of their lines. */
interface Step {
  readonly seen: number
  readonly points: number
  readonly digest: string
}

/** The chain that goes on with a step; `''` begins one. */
function link(chain: string, { seen, points, digest }: Step): string {
  return sha256(`${chain}\n${seen} ${points} ${digest}`)
}

/** The steps of a series as the statement tells them. */
type StepsRow = { readonly [K in keyof Identity]: Identity[K] } & Readonly<
  Record<'metric' | 'interval' | 'steps', string>
>

type Steps = ReadonlyMap<string, readonly Step[]>

/** What files with metric and interval brought to each month of each series that `find` gives the id of. */
async function stepsIn(
  engine: Engine,
  root: string,
  files: readonly PointsFile[],
  find: (key: string) => string | undefined,
): Promise<Map<string, Steps>> {
  const found = new Map<string, Steps>()
  const points = files.filter(({ table }) => table === 'points')
  if (points.length === 0) return found
  const source = namedSql(points.map((file) => ({ ...file, path: inLake(root, file.temporary ?? file.path) })))
  // Only own data say several things of one t at once.
  const order = points.some(({ metric }) => metric === null || metric.startsWith('own/')) ? 't, line' : 't'
  const rows = await engine.rows<StepsRow>(statement('steps', { source, order, identity: identityColumns.join(', ') }))
  for (const { metric, interval, steps, ...own } of rows) {
    const id = find(seriesKey(metric, interval, own))
    if (id === undefined) continue
    const months = new Map<string, Step[]>()
    for (const told of steps.split(',')) {
      const [month = '', seen, count, digest = ''] = told.split(' ')
      months.set(month, [...(months.get(month) ?? []), { seen: Number(seen), points: Number(count), digest }])
    }
    found.set(id, months)
  }
  return found
}

/** The chains of each month of each series in all of its files. */
export async function chainsIn(...all: Parameters<typeof stepsIn>): Promise<Map<string, Record<string, string>>> {
  const found = await stepsIn(...all)
  return new Map(
    [...found].map(([id, months]) => [
      id,
      Object.fromEntries([...months].map(([month, steps]) => [month, steps.reduce(link, '')])),
    ]),
  )
}

/** What a commit does to points files. */
interface Change {
  readonly add: readonly PointsFile[]
  readonly remove: readonly string[]
}

/** The progress with the chains of its months as they are after a change of files: all of their points are read. */
export async function withChains(
  ledger: Ledger,
  engine: Engine,
  progress: readonly Progress[],
  { add, remove }: Change,
): Promise<Progress[]> {
  const held = heldSeries(
    ledger,
    progress.map(({ series }) => series),
  )
  const own = [...held.values()]
  const ids = new Map(own.map((one) => [seriesKey(one.metric, storedInterval(one), identityOf(one)), one.id]))
  const metrics = new Set(own.map(({ metric }) => metric))
  const gone = new Set(remove)
  const left: readonly FileEntry[] = liveFiles(ledger, { table: 'points' }).filter(({ path }) => !gone.has(path))
  const files = [...left, ...add].filter(({ metric }) => metric === null || metrics.has(metric))
  const all = await chainsIn(engine, ledger.root, files, (key) => ids.get(key))
  return progress.map((one) => withOwn(one, all.get(one.series)))
}

/** What it does to digests and chains of each series that files stand for others, whose rows bear other clocks. */
export async function chainedShift(...all: Parameters<typeof digestShift>): Promise<Progress[]> {
  const [ledger, engine, change] = all
  return await withChains(ledger, engine, await digestShift(...all), change)
}

/** A month without points has no chain, which its count tells. */
export function withOwn(one: Progress, all: Readonly<Record<string, string>> | undefined): Progress {
  const months = Object.keys(one.digests ?? {})
  if (months.length === 0) return one
  return { ...one, chains: Object.fromEntries(months.map((month) => [month, all?.[month] ?? '-'])) }
}

/** The progress of a fetch with its chains: what new files bring goes on where the ledger's ends. */
export async function goneOn(
  ledger: Ledger,
  engine: Engine,
  progress: readonly Progress[],
  files: readonly PointsFile[],
  { find, at }: { readonly find: (key: string) => string | undefined; readonly at: Micros },
): Promise<Progress[]> {
  const brought = await stepsIn(engine, ledger.root, files, find)
  const [now, before] = [at, ledger.head().committed_at].map((instant) => Math.ceil(instant / 1000))
  const held = heldSeries(
    ledger,
    progress.map(({ series }) => series),
  )
  const doubtful = new Set<string>()
  const told = progress.map((one): Progress => {
    const n = seriesNumber(ledger, one.series)
    const months = n === undefined ? new Map<string, never>() : heldMonths(ledger, n)
    const counted = [...months.values()].reduce((sum, { points }) => sum + points, 0)
    if (counted !== (held.get(one.series)?.points ?? 0)) return one
    const chains: Record<string, string> = {}
    for (const month of Object.keys(one.digests ?? {})) {
      const steps = brought.get(one.series)?.get(month) ?? []
      const { points = 0, chain } = months.get(month) ?? {}
      if (points === 0) chains[month] = steps.reduce(link, '')
      // What came again bears the instant of its first coming, and two commits may be of one millisecond.
      else if (steps.some(({ seen }) => seen !== now || seen === before)) doubtful.add(one.series)
      else if (chain !== undefined) chains[month] = steps.reduce(link, chain)
    }
    return { ...one, chains }
  })
  if (doubtful.size === 0) return told
  const anew = await withChains(
    ledger,
    engine,
    told.filter(({ series }) => doubtful.has(series)),
    { add: files, remove: [] },
  )
  const own = new Map(anew.map((one) => [one.series, one]))
  return told.map((one) => own.get(one.series) ?? one)
}
