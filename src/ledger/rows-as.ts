import { LakeError } from '../errors.ts'
import type { Engine } from '../store/engine.ts'
import { type Check, type Shaped, shape } from './shape.ts'

/** Asks DuckDB and gives its rows as records of these columns, if they are what they should be: 64-bit integers as numbers. */
export async function rowsAs<S extends Readonly<Record<string, Check<unknown>>>>(
  engine: Engine,
  columns: S,
  sql: string,
): Promise<Shaped<S>[]> {
  const check = shape(columns)
  const rows: unknown[] = (await engine.rows(sql)).map(plain)
  const wrong = rows.map((row) => check(row)).find((found) => found !== undefined)
  if (wrong === undefined) return rows as Shaped<S>[]
  throw new LakeError('integrity', { subject: 'a data file of the lake', got: wrong, next: 'run pitlake doctor' })
}

function plain(value: unknown): unknown {
  if (typeof value === 'bigint') return Number(value)
  if (Array.isArray(value)) return value.map(plain)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, held]) => [key, plain(held)]))
}
