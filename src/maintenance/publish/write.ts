import { posix } from 'node:path'
import { sha256File } from '../../lake/ledger/commit.ts'
import { type Engine, quote, quoteName } from '../../lake/store/engine.ts'
import { sizeOf } from '../../lake/store/files.ts'
import { type Columns, columnsOf } from '../../lake/store/parquet.ts'
import type { Add, Logs, Texts } from './log.ts'
import type { Portions } from './ranges.ts'

/** Dependencies of writing data files; the views of the lake's version are in the engine. */
export interface Writing extends Logs {
  /** Prefix of the names of this publish's files, which no other publish uses. */
  readonly mark: string
  /** Milliseconds since 1970. */
  readonly now: () => number
  readonly portions: Portions
}

/**
 * Parquet that every reader takes: Spark before 4.3 reads no page of v2. A dictionary would take -0.0 and 0.0 for one
 * value.
 */
const format = 'FORMAT parquet, COMPRESSION zstd, PARQUET_VERSION v1, DICTIONARY_SIZE_LIMIT 0, RETURN_STATS'

/** Lists the columns of a SELECT as they are published. */
export async function columnsFor(engine: Engine, rows: string): Promise<readonly PublishedColumn[]> {
  return publishedColumns(await columnsOf(engine, `(${rows})`))
}

/** Rows for one file. */
export interface Portion {
  /** A SELECT; `where` and `order` name its columns as `published.…`. */
  readonly rows: string
  readonly columns: readonly PublishedColumn[]
  readonly where: readonly string[]
  /** Sort keys; empty: the order of the lake's files. */
  readonly order: readonly string[]
}

/** A data file on the local disk. */
export interface WrittenRows {
  /** Path of the file. */
  readonly local: string
  /** Number of rows. */
  readonly rows: number
  /** Statistics for the log, JSON. */
  readonly stats: string
}

/** Writes rows as one Parquet file to the local disk. */
export async function writeRows(
  { engine, local }: Writing,
  name: string,
  { rows, columns, where, order }: Portion,
): Promise<WrittenRows> {
  const file = local(name)
  const select = `SELECT ${selectList(columns)} FROM (${rows}) AS published`
  const condition = where.length === 0 ? '' : ` WHERE ${where.join(' AND ')}`
  const sorted = order.length === 0 ? '' : ` ORDER BY ${order.map((key) => `published.${quoteName(key)}`).join(', ')}`
  const [copyFacts] = await engine.rows<CopyFacts>(
    `COPY (${select}${condition}${sorted}) TO ${quote(file)} (${format})`,
  )
  const facts = new Map(
    (copyFacts?.column_statistics ?? []).map(({ key, value }) => [
      key,
      new Map(value.map((statistic) => [statistic.key, statistic.value])),
    ]),
  )
  const count = Number(copyFacts?.count ?? 0)
  return {
    local: file,
    rows: count,
    stats: deltaStats(count, columns, facts),
  }
}

type CopyFacts = {
  readonly count: bigint
  readonly column_statistics: readonly {
    readonly key: string
    readonly value: readonly { readonly key: string; readonly value: string }[]
  }[]
}

/** Uploads a file to the destination, under a name that no other writer uses, and returns its action for the log. */
export async function placeFile(
  { to, mark, now }: Writing,
  table: string,
  name: string,
  { local, stats }: WrittenRows,
  tags: Texts,
): Promise<Add> {
  const size = await sizeOf(local)
  const sha256 = await sha256File(local)
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

/** Type of a column in Delta: the name of a primitive type, or an array of strings. */
type DeltaType = string | { readonly type: 'array'; readonly elementType: 'string'; readonly containsNull: true }

/** A column as the lake's views have it, as Parquet gets it, and as Delta's schema names it. */
export interface PublishedColumn {
  readonly name: string
  /** SQL of the written value, over the relation's column. */
  readonly sql: string
  readonly type: DeltaType
}

const plain: Readonly<Record<string, string>> = {
  VARCHAR: 'string',
  DOUBLE: 'double',
  BIGINT: 'long',
  INTEGER: 'integer',
  BOOLEAN: 'boolean',
  DATE: 'date',
}

/** Types that replace those of counts and other results of a query. */
const narrowed: Readonly<Record<string, string>> = { HUGEINT: 'BIGINT', UBIGINT: 'BIGINT', JSON: 'VARCHAR' }

/** Derives the columns of a table from those of its relation `published`. */
function publishedColumns(columns: Columns): readonly PublishedColumn[] {
  return columns.map(({ name, type }) => {
    const published = `published.${quoteName(name)}`
    if (type === 'TIMESTAMP WITH TIME ZONE') return { name, sql: upToMillis(published), type: 'timestamp' }
    if (type === 'VARCHAR[]')
      return { name, sql: published, type: { type: 'array', elementType: 'string', containsNull: true } }
    const written = narrowed[type] ?? type
    const plainType = plain[written]
    if (plainType === undefined) throw new RangeError(`column ${name} is ${type}, which no table is published with`)
    return { name, sql: written === type ? published : `CAST(${published} AS ${written})`, type: plainType }
  })
}

/**
 * Builds the SQL of the instant rounded up to a whole millisecond: readers that know no finer ones see nothing earlier
 * than the lake does. Infinity has no name in other engines and is NULL.
 */
function upToMillis(instant: string): string {
  const micros = `epoch_us(${instant})`
  return `CASE WHEN isfinite(${instant}) THEN make_timestamptz(${micros} + (1000 - ${micros} % 1000) % 1000) END`
}

/** Formats the schema for the log. */
export function schemaString(columns: readonly PublishedColumn[]): string {
  const fields = columns.map(({ name, type }) => ({ name, type, nullable: true, metadata: {} }))
  return JSON.stringify({ type: 'struct', fields })
}

/** Formats the SELECT list of what is written. */
function selectList(columns: readonly PublishedColumn[]): string {
  return columns.map(({ name, sql }) => `${sql} AS ${quoteName(name)}`).join(', ')
}

/** Longer texts are no bounds: the engine may have cut them. */
const longestBound = 64

/**
 * Builds the statistics of a file for the log, as JSON, from those that COPY … RETURN_STATS returns of each column,
 * text by key. Instants are whole milliseconds: nothing is cut off.
 */
function deltaStats(
  rows: number,
  columns: readonly PublishedColumn[],
  facts: ReadonlyMap<string, ReadonlyMap<string, string>>,
): string {
  const minValues: Record<string, unknown> = {}
  const maxValues: Record<string, unknown> = {}
  const nullCount: Record<string, number> = {}
  for (const { name, type } of columns) {
    const columnFacts = facts.get(quoteName(name))
    const nulls = columnFacts?.get('null_count')
    if (nulls !== undefined) nullCount[name] = Number(nulls)
    const least = bound(type, columnFacts?.get('min'))
    const most = bound(type, columnFacts?.get('max'))
    if (least === undefined || most === undefined) continue
    minValues[name] = least
    maxValues[name] = most
  }
  return JSON.stringify({ numRecords: rows, minValues, maxValues, nullCount })
}

function bound(type: DeltaType, text: string | undefined): string | number | undefined {
  if (text === undefined) return undefined
  if (type === 'string') return text.length <= longestBound ? text : undefined
  if (type === 'date') return /^\d{4}-\d\d-\d\d$/.test(text) ? text : undefined
  if (type === 'long' || type === 'integer') return Number.isSafeInteger(Number(text)) ? Number(text) : undefined
  if (type !== 'timestamp') return undefined
  const [, day, time, fraction = ''] = /^(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d)(?:\.(\d{1,3}))?\+00$/.exec(text) ?? []
  return day === undefined ? undefined : `${day}T${time}.${fraction.padEnd(3, '0')}Z`
}

/** Formats an instant in microseconds as SQL. */
export const microsSql = (at: number): string => `make_timestamptz(${at}::BIGINT)`

/** Builds the condition that a metric is of a group: its path's first part. */
export function groupSql(group: string): string {
  return `(published.metric = ${quote(group)} OR starts_with(published.metric, ${quote(`${group}/`)}))`
}
