import { type Months, addDigests, asDigests, heldMonths, monthsBetween } from '../../lake/ledger/month-digests.ts'
import { seriesNumber } from '../../lake/ledger/apply.ts'
import type { StagedFile } from '../../lake/ledger/draft.ts'
import { type Progress, sha256 } from '../../lake/ledger/entry.ts'
import { type HeldSeries, heldSeries, liveFiles, storedInterval } from '../../lake/ledger/index-queries.ts'
import type { Ledger } from '../../lake/ledger/ledger.ts'
import { type Engine, quoteList } from '../../lake/store/engine.ts'
import type { Micros } from '../../base/time.ts'
import { identityOf } from './conversion.ts'
import { sharesOf } from './files.ts'
import { monthsIn, type PointsFile, seriesKey } from './month-sums.ts'
import type { MonthStep, MonthSum } from './records.ts'

/*
 * The chain of a month: what each commit brought to it, in the order of commits, hashed one after the other. It follows
 * from the points alone, whatever files they stand in, and a commit that adds to it needs none of the points before.
 */

/** The chain that goes on with what a month is made of; `''` begins one. */
function linked({ steps }: Pick<MonthSum, 'steps'>, from = ''): string {
  const link = (chain: string, { seen, points, digest }: MonthStep): string =>
    `b${sha256(`${chain}\n${seen} ${points} ${digest}`)}`
  return steps.reduce(link, from)
}

/** The progress with digests and chains of those months that hold other points than was known, or points that nobody chained. */
export function chained(
  one: Progress,
  all: ReadonlyMap<string, MonthSum> = new Map(),
  held: Months = new Map(),
): Progress {
  const unknown = [...all].filter(([month]) => held.get(month)?.chain === undefined)
  const none = unknown.map(([month, sum]) => [month, addDigests(sum, sum, -1)] as const)
  const { digests } = asDigests(new Map([...none, ...monthsBetween(held, all)]))
  if (digests === undefined) return one
  const told = Object.keys(digests).map((month) => [month, linked(all.get(month) ?? { steps: [] }) || '-'])
  return { ...one, digests, chains: Object.fromEntries(told) as Record<string, string> }
}

interface Change {
  readonly add: readonly PointsFile[]
  readonly remove: readonly string[]
}

/** The progress of series with digests and chains as they are after a change of files: all of their points are read. */
export async function withMonths(
  ledger: Ledger,
  engine: Engine,
  progress: readonly Progress[],
  { add, remove }: Change,
): Promise<Progress[]> {
  const names = progress.map(({ series }) => series)
  const own = [...heldSeries(ledger, names).values()]
  const ids = new Map(own.map((one) => [seriesKey(one.metric, storedInterval(one), identityOf(one)), one.id]))
  const metrics = new Set(own.map(({ metric }) => metric))
  const left = liveFiles(ledger, { table: 'points' }).filter(({ path }) => !remove.includes(path))
  const files = [...left, ...add].filter(({ metric }) => metric === null || metrics.has(metric))
  const among = (names: Iterable<string>): string => `IN (SELECT unnest(${quoteList([...new Set(names)])}))`
  const only = `metric ${among(metrics)} AND asset ${among(own.map(({ asset }) => asset))}`
  const all = await monthsIn(engine, ledger.root, files, (key) => ids.get(key), only)
  return progress.map((one) => {
    return chained(one, all.get(one.series), heldMonths(ledger, seriesNumber(ledger, one.series) ?? 0))
  })
}

/** Progress of series that gain and lose no point, to be told their months. */
export function unmoved(series: Iterable<HeldSeries>): Progress[] {
  return [...series].flatMap(({ id, first_t, last_t }) => {
    return first_t === null || last_t === null ? [] : [{ series: id, points: 0, first_t, last_t }]
  })
}

/** What it does to digests and chains of each series that files stand for others, whose rows bear other clocks. */
export async function chainedShift(
  ledger: Ledger,
  engine: Engine,
  change: Change & { readonly add: readonly StagedFile[] },
) {
  const old = liveFiles(ledger, { table: 'points' }).filter(({ path }) => change.remove.includes(path))
  const metrics = new Set([...old, ...change.add].flatMap((file) => sharesOf(file).map(({ metric }) => metric)))
  const own = heldSeries(ledger)
    .values()
    .filter(({ metric }) => metrics.has(metric))
  return await withMonths(ledger, engine, unmoved(own), change)
}

/** Extends the chains of the ledger by the points of new files, and returns the progress of the fetch with them. */
export async function extendChains(
  ledger: Ledger,
  engine: Engine,
  progress: readonly Progress[],
  brought: ReadonlyMap<string, ReadonlyMap<string, MonthSum>>,
  { add, at }: { readonly add: readonly PointsFile[]; readonly at: Micros },
): Promise<Progress[]> {
  const [now, before] = [at, ledger.head().committed_at].map((instant) => Math.ceil(instant / 1000))
  const doubtful: Progress[] = []
  const told = progress.map((one): Progress => {
    const months = heldMonths(ledger, seriesNumber(ledger, one.series) ?? 0)
    const counted = [...months.values()].reduce((sum, { points }) => sum + points, 0)
    const points = heldSeries(ledger, [one.series]).get(one.series)?.points ?? 0
    if (counted !== points) return one
    const chains: Record<string, string> = {}
    for (const [month, sum] of brought.get(one.series) ?? []) {
      const held = months.get(month)
      if (!held?.points) chains[month] = linked(sum)
      // What came again bears the instant of its first coming, and two commits may be of one millisecond.
      else if (sum.steps.some(({ seen }) => seen !== now || seen === before)) doubtful.push(one)
      else if (held.chain !== undefined) chains[month] = linked(sum, held.chain)
    }
    return { ...one, chains }
  })
  const anew = doubtful.length === 0 ? [] : await withMonths(ledger, engine, doubtful, { add, remove: [] })
  const own = new Map(anew.map((one) => [one.series, one]))
  return told.map((one) => own.get(one.series) ?? one)
}
