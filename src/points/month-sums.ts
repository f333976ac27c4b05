import { type Identity, identityColumns } from '../store/parquet.ts'
import type { Engine } from '../store/engine.ts'
import { inLake } from '../store/layout.ts'
import type { FileEntry } from '../ledger/entry.ts'
import { namedSql } from './files.ts'
import { type ChunkColumns, chunkColumns, type MonthSum, MonthRecords } from './records.ts'
import { statement } from './sql.ts'

/** The months of a series of a partition. */
interface SeriesSums extends Identity {
  readonly metric: string
  readonly interval: string
  readonly months: ReadonlyMap<string, MonthSum>
}

/** So many cells may lie until all is collected: few texts are made of them. */
const cells = 2 ** 24

/**
 * What a relation of points with metric and interval holds of each month of each series. As it comes (`inOrder`) it is
 * read until one of them comes again, then in an order.
 */
export async function monthSums(engine: Engine, source: string, inOrder = false): Promise<SeriesSums[]> {
  const identity = identityColumns.join(', ')
  const sql = statement('months', { source, identity, order: inOrder ? '' : 'ORDER BY who, t' })
  const found = new Map<string, SeriesSums & { readonly months: Map<string, MonthSum> }>()
  const records = new MonthRecords()
  let [low, high, begin, end] = [0, 0, 0, 0]
  let close = (): boolean => true
  for await (const chunk of (await engine.vectors(sql, undefined, cells)).chunks) {
    const columns = chunkColumns(chunk, identityColumns)
    const { t, who, text } = columns
    let from = 0
    for (let row = 0; row < columns.rows; row++) {
      const at = t[row] ?? 0
      if (at >= begin && at < end && who[2 * row] === low && who[2 * row + 1] === high) continue
      records.add(columns, from, row)
      if (!close()) return await monthSums(engine, source)
      from = row
      ;[low = 0, high = 0] = who.subarray(2 * row)
      const date = new Date(at / 1000)
      ;[begin, end] = [monthAt(date), monthAt(date, 1)]
      const own = found.get(`${low} ${high}`) ?? { ...namedIn(text, row), months: new Map<string, MonthSum>() }
      found.set(`${low} ${high}`, own)
      const month = date.toISOString().slice(0, 7)
      close = () => !own.months.has(month) && own.months.set(month, records.end()).size > 0
    }
    records.add(columns, from, columns.rows)
  }
  return close() ? [...found.values()] : await monthSums(engine, source)
}

/** When the month of a date begins, or the next one, in microseconds. */
const monthAt = (date: Date, more = 0): number => Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + more) * 1000

/** What tells a row's series apart. */
function namedIn(text: ChunkColumns['text'], row: number): Omit<SeriesSums, 'months'> {
  const [metric = '', interval = ''] = ['metric', 'interval'].map((name) => text(name, row) ?? '')
  const identity = identityColumns.map((name) => [name, text(name, row)])
  return { metric, interval, ...(Object.fromEntries(identity) as Identity & { asset: string }) }
}

/** What tells the series of a lake apart in its files: the interval is the one under which its points stand. */
export function seriesKey(metric: string, interval: string, identity: Identity): string {
  return JSON.stringify([metric, interval, ...identityColumns.map((name) => identity[name])])
}

/** A file that stands in the lake, or (`temporary`) waits for its commit. */
export type PointsFile = Pick<FileEntry, 'path' | 'table' | 'metric' | 'interval'> & {
  readonly temporary?: string | null
}

/** What those of these files that hold points hold of each month of each series that `find` gives the id of. */
export async function monthsIn(
  engine: Engine,
  root: string,
  files: readonly PointsFile[],
  find: (key: string) => string | undefined,
): Promise<Map<string, SeriesSums['months']>> {
  const found = new Map<string, SeriesSums['months']>()
  const points = files.filter(({ table }) => table === 'points')
  if (points.length === 0) return found
  const source = namedSql(points.map((file) => ({ ...file, path: inLake(root, file.temporary ?? file.path) })))
  // A file stands in the order of its series.
  const inOrder = new Set(points.map(({ metric, interval }) => `${metric} ${interval}`)).size === points.length
  for (const { months, ...one } of await monthSums(engine, source, inOrder)) {
    const id = find(seriesKey(one.metric, one.interval, one))
    if (id !== undefined) found.set(id, months)
  }
  return found
}
