import { readFileSync } from 'node:fs'
import { quoteList } from './engine.ts'
import { type Column, registryColumns } from './registry-columns.ts'

const texts = new Map<string, string>()

/** The statement `src/sql/registry/<name>.sql` with each `{{fragment}}` replaced; a missing one is an error. */
export function registryStatement(name: string, fragments: Readonly<Record<string, string>>): string {
  let text = texts.get(name)
  if (text === undefined) {
    text = readFileSync(new URL(`../sql/registry/${name}.sql`, import.meta.url), 'utf8')
    texts.set(name, text)
  }
  return text.replaceAll(/\{\{(\w+)\}\}/g, (_, key: string) => {
    const fragment = fragments[key]
    if (fragment === undefined) throw new RangeError(`registry/${name}.sql needs the fragment ${key}`)
    return fragment
  })
}

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
