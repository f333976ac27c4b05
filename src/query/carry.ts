import { Engine, quoteName } from '../store/engine.ts'
import { fileSql } from '../views/relations.ts'

/**
 * Brings the rows of a query into a temporary table of another engine, types and order kept; no file lies between the
 * two, so that neither must be able to reach what the other can.
 */
export async function carry(from: Engine, sql: string, to: Engine, table: string): Promise<number> {
  const stream = await from.vectors(sql)
  const columns = stream.columns.map(({ name, type }) => `${quoteName(name)} ${type.alias ?? String(type)}`)
  await to.run(`CREATE OR REPLACE TEMP TABLE ${quoteName(table)} (${columns.join(', ')})`)
  return to.append(table, stream)
}

/** The same of a Parquet file, which may lie anywhere. */
export async function carryFile(file: string, to: Engine, table: string): Promise<void> {
  using reader = await Engine.open(':memory:', { threads: 1, privateSpill: true })
  await carry(reader, `FROM ${fileSql(file)}`, to, table)
}
