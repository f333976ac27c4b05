import { columnsOf } from '../lake/store/parquet.ts'
import { Engine, quoteName } from '../lake/store/engine.ts'
import { fileSql } from './views/relations.ts'
import type { Filled } from './filled-columns.ts'

/** Counts the rows that only one of two tables has, with repetitions; undefined if their columns differ. */
export async function rowsBeside(session: Engine, firstTable: string, other: string) {
  const columns = await columnNames(session, firstTable)
  if (columns.join('\n') !== (await columnNames(session, other)).join('\n')) return undefined
  const list = columns.map((name) => bitsText(quoteName(name))).join(', ')
  const only = (left: string, right: string): string =>
    `(SELECT count(*) FROM (SELECT ${list} FROM ${left} EXCEPT ALL SELECT ${list} FROM ${right}))`
  const [row] = await session.rows<{ l: bigint; r: bigint }>(
    `SELECT ${only(firstTable, other)} AS l, ${only(other, firstTable)} AS r`,
  )
  return [Number(row?.l), Number(row?.r)] as const
}

/** Lists the names of a relation's columns, in their order. */
export async function columnNames(session: Engine, relation: string): Promise<string[]> {
  return (await columnsOf(session, relation)).map(({ name }) => name)
}

/** Builds the SQL of a value as text with all of its bits. */
export function bitsText(column: string): string {
  return `CAST(${column} AS VARCHAR)`
}

/**
 * Copies the rows of a query into a temporary table of a different engine, types and order preserved; no file lies
 * between the two, so that neither must be able to reach what the other can. `filled` sees the rows pass.
 */
export async function carry(from: Engine, sql: string, to: Engine, table: string, filled?: Filled): Promise<number> {
  const stream = await from.vectors(sql)
  const columns = stream.columns.map(({ name, type }) => `${quoteName(name)} ${type.alias ?? String(type)}`)
  await to.run(`CREATE OR REPLACE TEMP TABLE ${quoteName(table)} (${columns.join(', ')})`)
  return to.append(table, { ...stream, chunks: filled?.over(stream.chunks) ?? stream.chunks })
}

/** Copies the rows of a Parquet file from any place into a table of a session. */
export async function carryFile(file: string, to: Engine, table: string): Promise<void> {
  using reader = await Engine.open(':memory:', { threads: 1 })
  await carry(reader, `FROM ${fileSql(file)}`, to, table)
}
