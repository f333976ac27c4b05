import { asDigests, storedMonths, type Months, monthsBetween } from '../../lake/ledger/month-digests.ts'
import { seriesNumber } from '../../lake/ledger/apply.ts'
import type { StagedFile } from '../../lake/ledger/draft.ts'
import type { Progress } from '../../lake/ledger/entry.ts'
import { type StoredSeries, storedSeries, liveFiles, storedInterval } from '../../lake/ledger/index-queries.ts'
import type { Ledger } from '../../lake/ledger/ledger.ts'
import { type Engine, quoteList } from '../../lake/store/engine.ts'
import { identityOf } from './conversion-types.ts'
import { sharesOf } from './files.ts'
import { monthsIn, type PointsFile, seriesKey } from './month-sums.ts'

/** Adds to the progress of a series the changes from the months that the ledger knows to those in its files. */
export function withDigests(progress: Progress, all: Months = new Map(), storedMonths: Months = new Map()): Progress {
  return { ...progress, ...asDigests(monthsBetween(storedMonths, all)) }
}

/** Files that a commit adds and removes. */
interface FileChange {
  readonly add: readonly PointsFile[]
  readonly remove: readonly string[]
}

/**
 * Progress of series with the sums of their months as they are after a change of files: all of their points are read.
 */
export async function withMonths(
  ledger: Ledger,
  engine: Engine,
  progress: readonly Progress[],
  { add, remove }: FileChange,
): Promise<Progress[]> {
  const names = progress.map(({ series }) => series)
  const seriesRecords = [...storedSeries(ledger, names).values()]
  const ids = new Map(
    seriesRecords.map((series) => [seriesKey(series.metric, storedInterval(series), identityOf(series)), series.id]),
  )
  const metrics = new Set(seriesRecords.map(({ metric }) => metric))
  const left = liveFiles(ledger, { table: 'points' }).filter(({ path }) => !remove.includes(path))
  const files = [...left, ...add].filter(({ metric }) => metric === null || metrics.has(metric))
  const among = (values: Iterable<string>): string => `IN (SELECT unnest(${quoteList([...new Set(values)])}))`
  const only = `metric ${among(metrics)} AND asset ${among(seriesRecords.map(({ asset }) => asset))}`
  const all = await monthsIn(engine, ledger.root, files, (key) => ids.get(key), only)
  return progress.map((seriesProgress) => {
    return withDigests(
      seriesProgress,
      all.get(seriesProgress.series),
      storedMonths(ledger, seriesNumber(ledger, seriesProgress.series) ?? 0),
    )
  })
}

/** Progress of series that gain and lose no point. */
function unmoved(series: Iterable<StoredSeries>): Progress[] {
  return [...series].flatMap(({ id, first_t, last_t }) => {
    return first_t === null || last_t === null ? [] : [{ series: id, points: 0, first_t, last_t }]
  })
}

/** Sums of the months of each series in files that replace others because their rows have different clocks. */
export async function redatedMonths(
  ledger: Ledger,
  engine: Engine,
  change: FileChange & { readonly add: readonly StagedFile[] },
): Promise<Progress[]> {
  const old = liveFiles(ledger, { table: 'points' }).filter(({ path }) => change.remove.includes(path))
  const metrics = new Set([...old, ...change.add].flatMap((file) => sharesOf(file).map(({ metric }) => metric)))
  const seriesById = storedSeries(ledger)
    .values()
    .filter(({ metric }) => metrics.has(metric))
  return await withMonths(ledger, engine, unmoved(seriesById), change)
}
