import { type Identity, identityColumns } from '../../lake/store/parquet.ts'
import type { Engine } from '../../lake/store/engine.ts'
import { inLake } from '../../lake/store/layout.ts'
import type { FileEntry } from '../../lake/ledger/entry.ts'
import { namedSql } from './files.ts'
import type { MonthDigest } from '../../lake/ledger/month-digests.ts'
import { chunkColumns, MonthRecords } from './records.ts'
import { statement } from './sql.ts'

/** The months of a series of a partition. */
interface SeriesSums extends Identity {
  readonly metric: string
  /** The interval under which the points are stored. */
  readonly interval: string
  /** Digests by month, `2024-06`. */
  readonly months: ReadonlyMap<string, MonthDigest>
}

/** The months of a series while they are added up. */
interface GrowingSums extends SeriesSums {
  readonly months: Map<string, MonthDigest>
}

/** Maximum number of uncollected cells: few texts are made of them. */
const cells = 2 ** 24

/**
 * Computes the number and the digest of the points in a relation with metric and interval, by series and month. With
 * `inOrder` the relation is read unsorted until a month occurs again, and then sorted.
 */
export async function monthSums(engine: Engine, source: string, inOrder = false): Promise<SeriesSums[]> {
  const identity = identityColumns.join(', ')
  const sql = statement('month_records', { source, identity, ...millis, order: inOrder ? '' : 'ORDER BY who, t' })
  const bySeries = new Map<string, GrowingSums>()
  const records = new MonthRecords()
  let sums: GrowingSums | undefined
  const close = (): boolean => {
    const month = records.month
    return sums === undefined || (!sums.months.has(month) && sums.months.set(month, records.end()).size > 0)
  }
  for await (const chunk of (await engine.vectors(sql, undefined, cells)).chunks) {
    const columns = chunkColumns(chunk)
    for (let row = records.add(columns, 0); row < columns.rows; row = records.add(columns, row)) {
      if (!close()) return await monthSums(engine, source)
      records.begin(columns, row)
      const named = columns.text('named', row)
      if (named === null) continue
      sums = bySeries.get(named) ?? namedIn(named)
      bySeries.set(named, sums)
    }
  }
  return close() ? [...bySeries.values()] : await monthSums(engine, source)
}

/** SQL of the clocks of a point in milliseconds, as they are published. */
const millis = Object.fromEntries(
  ['available_at', 'computed_at', 'available_rule_at'].map((name) => [name, `((epoch_us(${name}) + 999) // 1000)`]),
)

/** Parses the name of a series in `months` into a series without months. */
function namedIn(named: string): GrowingSums {
  const [metric, interval, asset, ...rest] = JSON.parse(named) as [string, string, string, ...(string | null)[]]
  const [currency = null, exchange = null, network = null, params = null] = rest
  return { metric, interval, asset, currency, exchange, network, params, months: new Map<string, MonthDigest>() }
}

/**
 * Returns the key that identifies a series of a lake in its files; `interval` is the one under which its points are
 * stored.
 */
export function seriesKey(metric: string, interval: string, identity: Identity): string {
  return JSON.stringify([metric, interval, ...identityColumns.map((name) => identity[name])])
}

/** A file of the lake, or with `temporary` a file that waits for its commit. */
export type PointsFile = Pick<FileEntry, 'path' | 'table' | 'metric' | 'interval'> & {
  readonly temporary?: string | null
}

/**
 * Computes the months of each series in those of these files that contain points, limited to rows that satisfy `only`.
 * `find` returns the id of a series; others are left out.
 */
export async function monthsIn(
  engine: Engine,
  root: string,
  files: readonly PointsFile[],
  find: (key: string) => string | undefined,
  only = 'true',
): Promise<Map<string, ReadonlyMap<string, MonthDigest>>> {
  const monthsBySeries = new Map<string, ReadonlyMap<string, MonthDigest>>()
  const points = files.filter(({ table }) => table === 'points')
  if (points.length === 0) return monthsBySeries
  const named = namedSql(points.map((file) => ({ ...file, path: inLake(root, file.temporary ?? file.path) })))
  // A file is in the order of its series.
  const inOrder = new Set(points.map(({ metric, interval }) => `${metric} ${interval}`)).size === points.length
  for (const { months, ...monthSeries } of await monthSums(engine, `(FROM ${named} WHERE ${only})`, inOrder)) {
    const id = find(seriesKey(monthSeries.metric, monthSeries.interval, monthSeries))
    if (id !== undefined) monthsBySeries.set(id, months)
  }
  return monthsBySeries
}
