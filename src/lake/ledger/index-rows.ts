import { damagedIndexError } from '../store/database.ts'
import { type ValueCheck, type Json, shape, type Shaped } from '../../base/value-checks.ts'
import { LakeError } from '../../base/errors.ts'
import type { Engine } from '../store/engine.ts'

export type IndexCell = null | number | bigint | string | Uint8Array
export type IndexRow = Record<string, IndexCell>

/** A prepared statement of the index. */
export interface Statement {
  run(...values: IndexCell[]): unknown
  get(...values: IndexCell[]): IndexRow | undefined
  all(...values: IndexCell[]): IndexRow[]
  iterate(...values: IndexCell[]): Iterable<IndexRow>
}

/** The index as its readers and writers see it; statements are prepared once. */
export interface Index {
  exec(sql: string): void
  statement(sql: string): Statement
  /** Reverts the open transaction; does nothing if SQLite has already reverted it, as on a full disk. */
  rollBack(): void
}

/**
 * Runs work that reads the index in one transaction, so that other processes cannot change it in between; the work
 * writes nothing.
 */
export async function atOneInstant<T>(index: Index, work: () => Promise<T>): Promise<T> {
  index.exec('BEGIN')
  try {
    return await work()
  } finally {
    index.rollBack()
  }
}

function refuse(column: string, wrong: string): never {
  throw damagedIndexError(`holds ${wrong} in ${column}`)
}

/** Reads a cell as the type that the index stores in its column; anything else is an error. */
export function read<T>(check: ValueCheck<T>, cell: IndexCell | undefined, column: string): T {
  if (check.optional === true && cell === null) return checkedValue(check, undefined, column)
  return checkedValue(check, check.nested === true && cell !== null ? parseCell(cell, column) : cell, column)
}

/** Returns a value of a column if it passes the check; any other value is an error. */
export function checkedValue<T>(check: ValueCheck<T>, value: unknown, column: string): T {
  const wrong = check(value)
  return wrong === undefined ? (value as T) : refuse(column, wrong)
}

/** Parses a cell of JSON text. */
export function parseCell(cell: IndexCell | undefined, column: string): Json {
  try {
    return JSON.parse(String(cell)) as Json
  } catch {
    return refuse(column, 'no JSON')
  }
}

/** Reads rows as records of these columns; further ones are left aside. */
export function rowOf<S extends Readonly<Record<string, ValueCheck<unknown>>>>(
  columns: S,
): (row: IndexRow) => Shaped<S> {
  const checks = Object.entries(columns)
  return (row) => {
    const record: Record<string, unknown> = {}
    for (const [column, check] of checks) record[column] = read(check, row[column], column)
    return record as Shaped<S>
  }
}

/**
 * Runs a query in DuckDB and returns its rows as records of these columns, after checking them; 64-bit integers become
 * numbers.
 */
export async function rowsAs<S extends Readonly<Record<string, ValueCheck<unknown>>>>(
  engine: Engine,
  columns: S,
  sql: string,
): Promise<Shaped<S>[]> {
  const check = shape(columns)
  const rows: unknown[] = await engine.rows(sql)
  for (const row of rows) {
    const wrong = check(plain(row))
    if (wrong === undefined) continue
    throw new LakeError('integrity', { subject: 'a data file of the lake', got: wrong, next: 'run pitlake doctor' })
  }
  return rows as Shaped<S>[]
}

/** Converts the bigints in a value to numbers, in place because there may be very many rows. */
function plain(value: unknown): unknown {
  if (typeof value === 'bigint') return Number(value)
  if (typeof value !== 'object' || value === null) return value
  const members = value as Record<string, unknown>
  for (const key in members) {
    const member = members[key]
    if (typeof member === 'bigint' || typeof member === 'object') members[key] = plain(member)
  }
  return members
}

/**
 * Builds a function that converts a record of these columns to cells, the reverse of `rowOf`: nested values become JSON
 * text, absent ones NULL.
 */
export function cellsOf<S extends Readonly<Record<string, ValueCheck<unknown>>>>(columns: S) {
  const checks = Object.entries(columns)
  return (record: Shaped<S>): Record<string, IndexCell> => {
    const cells: Record<string, IndexCell> = {}
    for (const [column, check] of checks) {
      const value = (record as Readonly<Record<string, unknown>>)[column]
      const isLeftOut = value === undefined && check.optional === true
      cells[column] =
        check.nested === true && !isLeftOut ? JSON.stringify(value ?? null) : ((value ?? null) as IndexCell)
    }
    return cells
  }
}
