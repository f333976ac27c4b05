import { usage } from '../errors.ts'
import { type Cell, type Engine, quote } from '../store/engine.ts'
import { hint } from '../suggestion.ts'
import { setMoment } from '../query/lake.ts'
import { layTable } from '../query/table.ts'
import { endings, type Format, formatOf, formats } from '../query/write.ts'

/** The state that the dot commands change. */
export interface SessionState {
  readonly engine: Engine
  readonly folder: string
  readonly words: Vocabulary
  format: Format
  /** Rows of a table to show; 0 shows all. */
  rows: number
  timer: boolean
  /** The file that takes the next result. */
  out: string | undefined
  quit: boolean
}

/** Runs one dot command and gives what it has to say. */
export async function runDot(state: SessionState, line: string): Promise<string> {
  const [, name = '', rest = ''] = /^(\.\S*)\s*([\s\S]*)$/.exec(line.replace(/;\s*$/, '')) ?? []
  const argument = rest.trim().replace(/^'(.*)'$/s, '$1')
  const command = commands[name === '.exit' ? '.quit' : name]
  if (command) return command(state, argument)
  const known = dotCommands.map(([one]) => one)
  throw usage(name, {
    expected: 'a command of the session',
    got: name,
    next: hint(name, known) ?? 'see .help',
  })
}

type Command = (state: SessionState, argument: string) => string | Promise<string>

const commands: Readonly<Record<string, Command>> = {
  '.help': () => help(),
  '.quit': (state) => {
    state.quit = true
    return ''
  },
  '.as_of': async (state, argument) => travel(state, 'as_of', argument),
  '.observed_as_of': async (state, argument) => travel(state, 'observed_as_of', argument),
  '.tables': (state, glob) =>
    listed([...state.words.tables, ...state.words.functions.map((name) => `${name}(…)`)], glob),
  '.metrics': (state, glob) => listed(state.words.metrics, glob),
  '.assets': (state, glob) => listed(state.words.assets, glob),
  '.columns': columnsOf,
  '.format': (state, argument) => {
    if (argument === '') return `${state.format}\n`
    state.format = oneOf('.format', formats, argument) as Format
    return ''
  },
  '.out': (state, argument) => {
    if (argument === '') throw usage('.out', { expected: 'the name of a file', got: 'nothing' })
    if (formatOf(argument) === undefined && state.format === 'table')
      throw usage('.out', {
        expected: `a name that ends in ${endings.join(', ')}, or .format before it`,
        got: argument,
      })
    state.out = argument
    return `the next result goes to ${argument}\n`
  },
  '.rows': (state, argument) => {
    if (!/^\d{1,9}$/.test(argument))
      throw usage('.rows', { expected: 'a whole number, 0 for all', got: `"${argument}"` })
    state.rows = Number(argument)
    return ''
  },
  '.timer': (state, argument) => {
    state.timer = oneOf('.timer', ['on', 'off'], argument) === 'on'
    return ''
  },
}

function oneOf(name: string, known: readonly string[], got: string): string {
  if (known.includes(got)) return got
  throw usage(name, { expected: known.join(', '), got: `"${got}"` })
}

function help(): string {
  const width = Math.max(...dotCommands.map(([name, takes]) => name.length + takes.length + 1))
  const lines = dotCommands.map(
    ([name, takes, about]) => `${`${name} ${takes}`.padEnd(Math.min(width, 28))}  ${about}\n`,
  )
  return lines.join('')
}

async function travel(state: SessionState, name: 'as_of' | 'observed_as_of', argument: string): Promise<string> {
  if (argument === '') return `${name}: ${(await heldMoment(state.engine, name)) ?? 'now'}\n`
  await setMoment(state.engine, name, argument === 'now' ? undefined : argument, `.${name}`)
  return ''
}

/** The instant that a variable holds, as it was set; null while it is unset. */
export async function heldMoment(engine: Engine, name: 'as_of' | 'observed_as_of'): Promise<string | null> {
  const [row] = await engine.rows<{ held: string | null }>(
    `SELECT CAST(getvariable(${quote(name)}) AS VARCHAR) AS held`,
  )
  return row?.held ?? null
}

function listed(names: readonly string[], glob: string): string {
  const pattern = new RegExp(
    `^${(glob === '' ? '*' : glob)
      .replaceAll(/[.+^${}()|[\]\\]/g, String.raw`\$&`)
      .replaceAll('*', '.*')
      .replaceAll('?', '.')}$`,
    'i',
  )
  const found = names.filter((name) => pattern.test(name.replace(/\(…\)$/, '')))
  return found.length === 0 ? 'nothing of that name\n' : found.map((name) => `${name}\n`).join('')
}

async function columnsOf(state: SessionState, name: string): Promise<string> {
  const [table, schema] = name.split('.').toReversed()
  const rows = await state.engine.rows(
    `SELECT column_name AS "column", data_type AS type, comment AS meaning FROM duckdb_columns()
 WHERE database_name = current_database() AND table_name = ? AND schema_name = ? ORDER BY column_index`,
    [table ?? '', schema ?? 'main'],
  )
  if (rows.length === 0) throw usage('.columns', { expected: 'a table or view, see .tables', got: `"${name}"` })
  const keys = ['column', 'type', 'meaning']
  const columns = keys.map((key) => rows.map((row): Cell => row[key] ?? null))
  return layTable(keys, ['VARCHAR', 'VARCHAR', 'VARCHAR'], columns, { width: 120, longest: 70 })
}

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
