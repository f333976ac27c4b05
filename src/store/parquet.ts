import { type Engine, quote, quoteList } from './engine.ts'

/** The columns of a relation, with their DuckDB types. */
export type Columns = readonly { readonly name: string; readonly type: string }[]

/** The columns of a relation for FROM, in their order. */
export async function columnsOf(session: Engine, relation: string): Promise<Columns> {
  const rows = await session.rows<{ column_name: string; column_type: string }>(`DESCRIBE FROM ${relation}`)
  return rows.map(({ column_name: name, column_type: type }) => ({ name, type }))
}

/** Parquet files as a relation without what their folders say; columns that a file lacks are NULL. */
export function parquet(paths: readonly string[]): string {
  return `read_parquet(${quoteList(paths)}, union_by_name = true, hive_partitioning = false)`
}

/** The option of COPY that puts these pairs into the footer of a Parquet file; '' for none. */
export function footerSql(metadata: Readonly<Record<string, string>>): string {
  const pairs = Object.entries(metadata).map(([key, value]) => `${quote(key)}: ${quote(value)}`)
  return pairs.length === 0 ? '' : `, KV_METADATA {${pairs.join(', ')}}`
}
