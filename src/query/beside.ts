import { columnsOf } from '../store/parquet.ts'
import { type Engine, quoteName } from '../store/engine.ts'

/** How many rows only the one and only the other table has, each as often as it stands there; undefined where their columns differ. */
export async function rowsBeside(
  session: Engine,
  one: string,
  other: string,
): Promise<readonly [number, number] | undefined> {
  const columns = await columnNames(session, one)
  if (columns.join('\n') !== (await columnNames(session, other)).join('\n')) return undefined
  const list = columns.map((name) => bitsText(quoteName(name))).join(', ')
  const only = (left: string, right: string): string =>
    `(SELECT count(*) FROM (SELECT ${list} FROM ${left} EXCEPT ALL SELECT ${list} FROM ${right}))`
  const [row] = await session.rows<{ l: bigint; r: bigint }>(
    `SELECT ${only(one, other)} AS l, ${only(other, one)} AS r`,
  )
  return [Number(row?.l), Number(row?.r)]
}

/** The names of a relation's columns, in their order. */
export async function columnNames(session: Engine, relation: string): Promise<string[]> {
  return (await columnsOf(session, relation)).map(({ name }) => name)
}

/** Any value as text that tells all of its bits. */
export function bitsText(column: string): string {
  return `CAST(${column} AS VARCHAR)`
}
