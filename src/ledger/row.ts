import { damaged } from '../store/sqlite-errors.ts'
import type { Check, Json, Shaped } from './shape.ts'

export type Cell = null | number | bigint | string | Uint8Array
export type Row = Record<string, Cell>

/** A prepared statement of the index. */
export interface Statement {
  run(...values: Cell[]): unknown
  get(...values: Cell[]): Row | undefined
  all(...values: Cell[]): Row[]
  iterate(...values: Cell[]): Iterable<Row>
}

/** The index as its readers and writers see it; statements are prepared once. */
export interface Index {
  exec(sql: string): void
  statement(sql: string): Statement
}

/** What the work reads of the index is of one instant, whatever other processes bring it up to meanwhile; it writes nothing. */
export async function atOneInstant<T>(index: Index, work: () => Promise<T>): Promise<T> {
  index.exec('BEGIN')
  try {
    return await work()
  } finally {
    index.exec('COMMIT')
  }
}

function refuse(column: string, wrong: string): never {
  throw damaged(`holds ${wrong} in ${column}`)
}

/** A cell as what the index keeps in its column, and nothing else. */
export function read<T>(check: Check<T>, cell: Cell | undefined, column: string): T {
  return proven(check, check.nested === true && cell !== null ? parsed(cell, column) : cell, column)
}

/** A value of a column, if it is what the check wants. */
export function proven<T>(check: Check<T>, value: unknown, column: string): T {
  const wrong = check(value)
  return wrong === undefined ? (value as T) : refuse(column, wrong)
}

/** The value of a cell of JSON text. */
export function parsed(cell: Cell | undefined, column: string): Json {
  try {
    return JSON.parse(String(cell)) as Json
  } catch {
    return refuse(column, 'no JSON')
  }
}

/** Reads rows as records of these columns; further ones are left aside. */
export function rowOf<S extends Readonly<Record<string, Check<unknown>>>>(columns: S): (row: Row) => Shaped<S> {
  const checks = Object.entries(columns)
  return (row) => {
    const record: Record<string, unknown> = {}
    for (const [column, check] of checks) record[column] = read(check, row[column], column)
    return record as Shaped<S>
  }
}
