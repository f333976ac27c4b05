import { quote, quoteName } from '../store/engine.ts'
import type { Columns } from '../store/parquet.ts'

/** A column as the lake's views have it, as Parquet gets it, and as Delta's schema names it. */
export interface PublishedColumn {
  readonly name: string
  /** Of the relation's column, an expression that gives what is written. */
  readonly sql: string
  /** A primitive type of Delta, or an array of strings. */
  readonly type: string | { readonly type: 'array'; readonly elementType: 'string'; readonly containsNull: true }
}

const plain: Readonly<Record<string, string>> = {
  VARCHAR: 'string',
  DOUBLE: 'double',
  BIGINT: 'long',
  INTEGER: 'integer',
  BOOLEAN: 'boolean',
  DATE: 'date',
}

/** What is written instead of what a query may count or hold. */
const narrowed: Readonly<Record<string, string>> = { HUGEINT: 'BIGINT', UBIGINT: 'BIGINT', JSON: 'VARCHAR' }

/** The columns of a table from those of its relation `published`. */
export function publishedColumns(columns: Columns): readonly PublishedColumn[] {
  return columns.map(({ name, type }) => {
    const own = `published.${quoteName(name)}`
    if (type === 'TIMESTAMP WITH TIME ZONE') return { name, sql: upToMillis(own), type: 'timestamp' }
    if (type === 'VARCHAR[]')
      return { name, sql: own, type: { type: 'array', elementType: 'string', containsNull: true } }
    const written = narrowed[type] ?? type
    const told = plain[written]
    if (told === undefined) throw new RangeError(`column ${name} is ${type}, which no table is published with`)
    return { name, sql: written === type ? own : `CAST(${own} AS ${written})`, type: told }
  })
}

/**
 * The instant rounded up to a whole millisecond: readers that know no finer ones see nothing earlier than the lake does.
 * What lies at infinity has no name in other engines and is NULL.
 */
function upToMillis(instant: string): string {
  const micros = `epoch_us(${instant})`
  return `CASE WHEN isfinite(${instant}) THEN make_timestamptz(${micros} + (1000 - ${micros} % 1000) % 1000) END`
}

/** The schema as the log tells it. */
export function schemaString(columns: readonly PublishedColumn[]): string {
  const fields = columns.map(({ name, type }) => ({ name, type, nullable: true, metadata: {} }))
  return JSON.stringify({ type: 'struct', fields })
}

/** The SELECT list of what is written. */
export function selectList(columns: readonly PublishedColumn[]): string {
  return columns.map(({ name, sql }) => `${sql} AS ${quoteName(name)}`).join(', ')
}

/** What COPY … RETURN_STATS tells of a column: text by key. */
export type ColumnFacts = ReadonlyMap<string, string>

/** Longer texts are no bounds: the engine may have cut them. */
const longestBound = 64

/** The statistics of a file as the log tells them, JSON. Instants are whole milliseconds: nothing is cut off. */
export function statsOf(
  rows: number,
  columns: readonly PublishedColumn[],
  facts: ReadonlyMap<string, ColumnFacts>,
): string {
  const minValues: Record<string, unknown> = {}
  const maxValues: Record<string, unknown> = {}
  const nullCount: Record<string, number> = {}
  for (const { name, type } of columns) {
    const own = facts.get(quoteName(name))
    const nulls = own?.get('null_count')
    if (nulls !== undefined) nullCount[name] = Number(nulls)
    const [least, most] = [bound(type, own?.get('min')), bound(type, own?.get('max'))]
    if (least === undefined || most === undefined) continue
    minValues[name] = least
    maxValues[name] = most
  }
  return JSON.stringify({ numRecords: rows, minValues, maxValues, nullCount })
}

function bound(type: PublishedColumn['type'], text: string | undefined): string | number | undefined {
  if (text === undefined) return undefined
  if (type === 'string') return text.length <= longestBound ? text : undefined
  if (type === 'date') return /^\d{4}-\d\d-\d\d$/.test(text) ? text : undefined
  if (type === 'long' || type === 'integer') return Number.isSafeInteger(Number(text)) ? Number(text) : undefined
  if (type !== 'timestamp') return undefined
  const [, day, time, fraction = ''] = /^(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d)(?:\.(\d{1,3}))?\+00$/.exec(text) ?? []
  return day === undefined ? undefined : `${day}T${time}.${fraction.padEnd(3, '0')}Z`
}

/** An instant in microseconds as SQL. */
export function instantSql(at: number): string {
  return `make_timestamptz(${at}::BIGINT)`
}

/** The condition that a metric is of a group: its path's first part. */
export function groupSql(group: string): string {
  return `(published.metric = ${quote(group)} OR starts_with(published.metric, ${quote(`${group}/`)}))`
}
