import type { Engine } from '../store/engine.ts'
import { formats } from './write.ts'

/** The words that a session can complete. */
export interface Vocabulary {
  readonly tables: readonly string[]
  readonly columns: readonly string[]
  readonly functions: readonly string[]
  readonly metrics: readonly string[]
  readonly assets: readonly string[]
}

/** The commands of a session, with what they take and do. */
export const dotCommands: readonly (readonly [name: string, takes: string, about: string])[] = [
  ['.as_of', '[TIME | now]', 'what was knowable then: .as_of 2024-06-01'],
  ['.observed_as_of', '[TIME | now]', 'what this lake held then'],
  ['.tables', '[GLOB]', 'tables, views and macros'],
  ['.columns', 'NAME', 'columns of a table or view, with what they mean'],
  ['.metrics', '[GLOB]', "metrics: .metrics 'supply/*'"],
  ['.assets', '[GLOB]', 'assets of the metrics API'],
  ['.format', `[${formats.join(' | ')}]`, 'how results are written'],
  ['.out', 'FILE', 'write the next result to a file'],
  ['.rows', 'N', 'rows of a table to show; 0: all'],
  ['.timer', 'on | off', 'how long each statement took'],
  ['.help', '', 'this list'],
  ['.quit', '', 'leave (also Ctrl-D)'],
]

const keywords =
  `SELECT, FROM, WHERE, GROUP BY, ORDER BY, HAVING, QUALIFY, LIMIT, WITH, JOIN, ASOF JOIN, LEFT JOIN, USING,
  INTERVAL, DISTINCT, DESCRIBE, SUMMARIZE, EXPLAIN, SET VARIABLE, CREATE TEMP TABLE, TIMESTAMPTZ`.split(/,\s+/)

/** Reads the names that the lake offers. */
export async function readVocabulary(engine: Engine): Promise<Vocabulary> {
  const list = async (sql: string): Promise<string[]> => {
    const rows = await engine.rows<{ name: string }>(sql)
    return rows.map((row) => row.name)
  }
  const lake = 'database_name = current_database()'
  const full = (name: string): string =>
    `CASE schema_name WHEN 'main' THEN ${name} ELSE schema_name || '.' || ${name} END`
  const tables = await list(
    `SELECT ${full('view_name')} AS name FROM duckdb_views() WHERE ${lake}
 UNION ALL SELECT ${full('table_name')} FROM duckdb_tables() WHERE ${lake} ORDER BY 1`,
  )
  const from = ['series', 'points'].find((name) => tables.includes(name))
  const namesIn = async (column: string): Promise<string[]> =>
    from === undefined
      ? []
      : list(`SELECT DISTINCT ${column} AS name FROM ${from} WHERE ${column} IS NOT NULL ORDER BY 1`)
  return {
    tables,
    columns: await list(`SELECT DISTINCT column_name AS name FROM duckdb_columns() WHERE ${lake} ORDER BY 1`),
    functions: await list(
      `SELECT DISTINCT ${full('function_name')} AS name FROM duckdb_functions() WHERE ${lake} AND function_type IN ('macro', 'table_macro') ORDER BY 1`,
    ),
    metrics: await namesIn('metric'),
    assets: await namesIn('asset'),
  }
}

/** What the word before the cursor may become, and that word; in the manner of `node:readline`. */
export function complete(line: string, words: Vocabulary): [string[], string] {
  if (/^\s*\./.test(line)) return completeDot(line.trimStart(), words)
  const quoted = openText(line)
  if (quoted !== undefined) return matching(quoted, [...words.metrics, ...words.assets])
  const fragment = /[\w.]*$/.exec(line)?.[0] ?? ''
  const bare = [...words.tables, ...words.functions.map((name) => `${name}(`), ...words.columns]
  const small = fragment !== '' && fragment === fragment.toLowerCase()
  return matching(fragment, [...bare, ...keywords.map((word) => (small ? word.toLowerCase() : word))])
}

function completeDot(line: string, words: Vocabulary): [string[], string] {
  const match = /^(\.\w+)\s+'?(\S*)$/.exec(line)
  if (!match)
    return matching(
      line,
      dotCommands.map(([name]) => name),
    )
  const [, command = '', argument = ''] = match
  const offers: Readonly<Record<string, readonly string[]>> = {
    '.metrics': words.metrics,
    '.assets': words.assets,
    '.tables': [...words.tables, ...words.functions],
    '.columns': words.tables,
    '.format': formats,
    '.timer': ['on', 'off'],
  }
  return matching(argument, offers[command] ?? [])
}

/** What stands behind an opened quote that is not closed. */
function openText(line: string): string | undefined {
  const parts = line.split("'")
  return parts.length % 2 === 0 ? parts.at(-1) : undefined
}

function matching(fragment: string, words: readonly string[]): [string[], string] {
  const low = fragment.toLowerCase()
  return [[...new Set(words.filter((word) => word.toLowerCase().startsWith(low)))], fragment]
}
