import { quoteList } from '../store/engine.ts'
import { statementsIn } from '../store/sql.ts'
import { tableColumns } from './columns.ts'

/** The statements of this room. */
export const statement = statementsIn(new URL('sql/', import.meta.url))

/** The files of a registry table as a relation for FROM; an empty one, without typed fields, where there are none. */
export function relation(table: string, files: readonly string[]): string {
  const columns = tableColumns(table).map(([name, type]) => `CAST(NULL AS ${type}) AS "${name}"`)
  const empty = `(SELECT ${columns.join(', ')} WHERE false)`
  if (files.length === 0) return empty
  // Files of an earlier time may lack a column.
  return `(FROM ${empty} UNION ALL BY NAME FROM read_parquet(${quoteList(files)}, union_by_name = true, hive_partitioning = false))`
}
