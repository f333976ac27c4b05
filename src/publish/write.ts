import { posix } from 'node:path'
import { sha256File } from '../ledger/commit.ts'
import { sizeOf } from '../store/files.ts'
import { type Engine, quote, quoteName } from '../store/engine.ts'
import { columnsOf } from '../store/parquet.ts'
import type { Add, Texts } from './actions.ts'
import type { Logs } from './log.ts'
import type { Portions } from './ranges.ts'
import { type ColumnFacts, type PublishedColumn, publishedColumns, selectList, statsOf } from './schema.ts'

/** What writing data files needs; the views of the lake's version are in the engine. */
export interface Writing extends Logs {
  /** Begins the names of this publish's files: nobody else uses it. */
  readonly mark: string
  /** Milliseconds since 1970. */
  readonly now: () => number
  readonly portions: Portions
}

/** What Parquet every reader takes: Spark before 4.3 reads no page of v2. */
const format = 'FORMAT parquet, COMPRESSION zstd, PARQUET_VERSION v1, DICTIONARY_SIZE_LIMIT 1, RETURN_STATS'

/** The columns of a SELECT as they are published. */
export async function columnsFor(engine: Engine, rows: string): Promise<readonly PublishedColumn[]> {
  return publishedColumns(await columnsOf(engine, `(${rows})`))
}

/** Rows for one file. */
export interface Portion {
  /** A SELECT; `where` and `order` name its columns as `published.…`. */
  readonly rows: string
  readonly columns: readonly PublishedColumn[]
  readonly where: readonly string[]
  /** Nothing: as the lake's files have them. */
  readonly order: readonly string[]
}

/** A data file that is not at the destination yet. */
export interface Written {
  readonly local: string
  readonly rows: number
  readonly stats: string
}

/** Writes rows as one Parquet file to the local disk. */
export async function writeRows(
  { engine, local }: Writing,
  name: string,
  { rows, columns, where, order }: Portion,
): Promise<Written> {
  const file = local(name)
  const select = `SELECT ${selectList(columns)} FROM (${rows}) AS published`
  const condition = where.length === 0 ? '' : ` WHERE ${where.join(' AND ')}`
  const sorted = order.length === 0 ? '' : ` ORDER BY ${order.map((key) => `published.${quoteName(key)}`).join(', ')}`
  const [told] = await engine.rows<CopyFacts>(`COPY (${select}${condition}${sorted}) TO ${quote(file)} (${format})`)
  const facts = new Map(
    (told?.column_statistics ?? []).map(({ key, value }) => [key, new Map(value.map((one) => [one.key, one.value]))]),
  )
  const count = Number(told?.count ?? 0)
  return { local: file, rows: count, stats: statsOf(count, columns, facts satisfies ReadonlyMap<string, ColumnFacts>) }
}

type CopyFacts = {
  readonly count: bigint
  readonly column_statistics: readonly {
    readonly key: string
    readonly value: readonly { readonly key: string; readonly value: string }[]
  }[]
}

/** Brings a file to the destination, under a name that nobody else uses, and tells what the log is to say of it. */
export async function placeFile(
  { to, mark, now }: Writing,
  table: string,
  name: string,
  { local, stats }: Written,
  tags: Texts,
): Promise<Add> {
  const [size, sha256] = [await sizeOf(local), await sha256File(local)]
  const path = `${posix.dirname(name)}/${mark}-${posix.basename(name)}.parquet`.replace(/^\.\//, '')
  await to.put(`${table}/${path}`, local)
  return {
    path,
    partitionValues: {},
    size,
    modificationTime: now(),
    dataChange: true,
    stats,
    tags: { ...tags, sha256 },
  }
}
