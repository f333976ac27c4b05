import { quoteList } from '../store/engine.ts'
import { statementsIn } from '../store/sql.ts'
import { type Column, registryColumns } from './columns.ts'

/** The statements of this room. */
export const statement = statementsIn(new URL('sql/', import.meta.url))

/** The columns of a registry table. */
export function columnsOfTable(table: string): readonly Column[] {
  const columns = registryColumns[table]
  if (!columns) throw new RangeError(`no registry table ${table}`)
  return columns
}

/** The files of a registry table as a relation for FROM; an empty one of the same columns where there are none. */
export function relation(table: string, files: readonly string[]): string {
  const columns = columnsOfTable(table)
  const empty = `(SELECT ${columns.map(([name, type]) => `CAST(NULL AS ${type}) AS "${name}"`).join(', ')} WHERE false)`
  if (files.length === 0) return empty
  // Files of an earlier time may lack a column.
  return `(FROM ${empty} UNION ALL BY NAME FROM read_parquet(${quoteList(files)}, union_by_name = true, hive_partitioning = false))`
}
