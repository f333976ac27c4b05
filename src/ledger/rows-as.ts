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
  const rows: unknown[] = await engine.rows(sql)
  for (const row of rows) {
    const wrong = check(plain(row))
    if (wrong === undefined) continue
    throw new LakeError('integrity', { subject: 'a data file of the lake', got: wrong, next: 'run pitlake doctor' })
  }
  return rows as Shaped<S>[]
}

/** Makes numbers of the integers in a value, in place: there may be very many rows. */
function plain(value: unknown): unknown {
  if (typeof value === 'bigint') return Number(value)
  if (typeof value !== 'object' || value === null) return value
  const members = value as Record<string, unknown>
  for (const key in members) {
    const held = members[key]
    if (typeof held === 'bigint' || typeof held === 'object') members[key] = plain(held)
  }
  return members
}
