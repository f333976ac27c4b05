import { usage } from '../../base/errors.ts'
import { type Cell, type Engine, quote } from '../../lake/store/engine.ts'
import { hint } from '../../base/suggestion.ts'
import { setMoment } from '../../query/lake.ts'
import { layTable } from '../../query/table.ts'
import { endings, type Format, formatOf, formats, refuseFalseName } from '../../query/write.ts'

/** The state that the dot commands change. */
export interface SessionState {
  engine: Engine
  /** Timestamps that were set when a line was last requested; null if none was. */
  held: { readonly asOf: string | null; readonly observedAsOf: string | null }
  /** Whether a fatal error ended the engine, so that it answers nothing more. */
  isLost: boolean
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

/** Runs one dot command and returns its output. */
export async function runDot(state: SessionState, line: string): Promise<string> {
  const [, name = '', rest = ''] = /^(\.\S*)\s*([\s\S]*)$/.exec(line.replace(/;\s*$/, '')) ?? []
  const argument = rest.trim().replace(/^'(.*)'$/s, '$1')
  const [, , , run] = commands.find(([word]) => word === (name === '.exit' ? '.quit' : name)) ?? []
  if (run) return (await run(state, argument)) ?? ''
  const next = hint(name, dotNames) ?? 'see .help'
  throw usage(name, { expected: 'a command of the session', got: name, next })
}

/** Function that runs a command and returns its output, if any. */
type Run = (state: SessionState, argument: string) => string | void | Promise<string | void>
/** A command of the session with what it takes and does, and what its argument may become. */
type DotCommand = readonly [name: string, takes: string, about: string, run: Run, offers?: Offers]
type Offers = (words: Vocabulary) => readonly string[]

/** Builds the command that lists the names that fit a pattern. */
const names =
  (offers: Offers): Run =>
  ({ words }, glob) => {
    const plain = (glob || '*').replaceAll(/[.+^${}()|[\]\\]/g, String.raw`\$&`)
    const pattern = new RegExp(`^${plain.replaceAll('*', '.*').replaceAll('?', '.')}$`, 'i')
    const found = offers(words).filter((name) => pattern.test(name.replace(/\(…\)$/, '')))
    return found.length === 0 ? 'nothing of that name\n' : found.map((name) => `${name}\n`).join('')
  }
const metrics: Offers = (words) => words.metrics
const assets: Offers = (words) => words.assets
const called: Offers = ({ tables, functions }) => [...tables, ...functions.map((name) => `${name}(…)`)]
const objects: Offers = ({ tables, functions }) => [...tables, ...functions]

const commands: readonly DotCommand[] = [
  ['.as_of', '[TIME | now]', 'what was knowable then: .as_of 2024-06-01', async (...of) => travel('as_of', ...of)],
  ['.observed_as_of', '[TIME | now]', 'what this lake held then', async (...of) => travel('observed_as_of', ...of)],
  ['.tables', '[GLOB]', 'tables, views and macros', names(called), objects],
  ['.columns', 'NAME', 'columns of a table or view, with what they mean', columnsOf, (words) => words.tables],
  ['.metrics', '[GLOB]', "metrics: .metrics 'supply/*'", names(metrics), metrics],
  ['.assets', '[GLOB]', 'assets of the metrics API', names(assets), assets],
  ['.format', `[${formats.join(' | ')}]`, 'how results are written', setFormat, () => formats],
  ['.out', 'FILE', 'write the next result to a file', setOut],
  ['.rows', 'N', 'rows of a table to show; 0: all', setRows],
  ['.timer', 'on | off', 'how long each statement took', setTimer, () => ['on', 'off']],
  ['.help', '', 'this list', help],
  ['.quit', '', 'leave (also Ctrl-D)', (state) => void (state.quit = true)],
]

/** The names of the commands of a session. */
export const dotNames: readonly string[] = commands.map(([name]) => name)

function setFormat(state: SessionState, argument: string): string | void {
  if (argument === '') return `${state.format}\n`
  state.format = oneOf('.format', formats, argument) as Format
}

function setOut(state: SessionState, argument: string): string {
  if (argument === '') throw usage('.out', { expected: 'the name of a file', got: 'nothing' })
  const expected = `a name that ends in ${endings.join(', ')}, or .format before it`
  if (formatOf(argument) === undefined && state.format === 'table') throw usage('.out', { expected, got: argument })
  refuseFalseName(formatOf(argument) ?? state.format, argument)
  state.out = argument
  return `the next result goes to ${argument}\n`
}

function setRows(state: SessionState, argument: string): void {
  if (!/^\d{1,9}$/.test(argument)) throw usage('.rows', { expected: 'a whole number, 0 for all', got: `"${argument}"` })
  state.rows = Number(argument)
}

function setTimer(state: SessionState, argument: string): void {
  state.timer = oneOf('.timer', ['on', 'off'], argument) === 'on'
}

function oneOf(name: string, allowed: readonly string[], got: string): string {
  if (allowed.includes(got)) return got
  throw usage(name, { expected: allowed.join(', '), got: `"${got}"` })
}

function help(): string {
  const width = Math.min(28, Math.max(...commands.map(([name, takes]) => name.length + takes.length + 1)))
  return commands.map(([name, takes, about]) => `${`${name} ${takes}`.padEnd(width)}  ${about}\n`).join('')
}

async function travel(name: 'as_of' | 'observed_as_of', { engine }: SessionState, argument: string) {
  if (argument === '') return `${name}: ${(await sessionMoment(engine, name)) ?? 'now'}\n`
  await setMoment(engine, name, argument === 'now' ? undefined : argument, `.${name}`)
}

/** Reads the timestamp in a variable, as it was set; null while it is unset. */
export async function sessionMoment(engine: Engine, name: 'as_of' | 'observed_as_of'): Promise<string | null> {
  const [row] = await engine.rows<{ held: string | null }>(
    `SELECT CAST(getvariable(${quote(name)}) AS VARCHAR) AS held`,
  )
  return row?.held ?? null
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
  /** Views and tables. */
  readonly tables: readonly string[]
  readonly columns: readonly string[]
  /** Macros. */
  readonly functions: readonly string[]
  /** Paths of the metrics with points. */
  readonly metrics: readonly string[]
  /** Ids of the assets with points. */
  readonly assets: readonly string[]
}

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
      `SELECT DISTINCT ${full('function_name')} AS name FROM duckdb_functions() WHERE ${lake} AND ` +
        `function_type IN ('macro', 'table_macro') ORDER BY 1`,
    ),
    metrics: await namesIn('metric'),
    assets: await namesIn('asset'),
  }
}

/** Lists the completions of the word before the cursor, and that word; in the manner of `node:readline`. */
export function complete(line: string, words: Vocabulary): [string[], string] {
  if (/^\s*\./.test(line)) return completeDot(line.trimStart(), words)
  // Text after an opened quote that is not closed.
  const parts = line.split("'")
  if (parts.length % 2 === 0) return matching(parts.at(-1) ?? '', [...words.metrics, ...words.assets])
  const fragment = /[\w.]*$/.exec(line)?.[0] ?? ''
  const bare = [...words.tables, ...words.functions.map((name) => `${name}(`), ...words.columns]
  const small = fragment !== '' && fragment === fragment.toLowerCase()
  return matching(fragment, [...bare, ...keywords.map((word) => (small ? word.toLowerCase() : word))])
}

function completeDot(line: string, words: Vocabulary): [string[], string] {
  const [, command = '', argument = ''] = /^(\.\w+)\s+'?(\S*)$/.exec(line) ?? []
  if (command === '') return matching(line, dotNames)
  const [, , , , offers] = commands.find(([name]) => name === command) ?? []
  return matching(argument, offers?.(words) ?? [])
}

function matching(fragment: string, words: readonly string[]): [string[], string] {
  const low = fragment.toLowerCase()
  return [[...new Set(words.filter((word) => word.toLowerCase().startsWith(low)))], fragment]
}
