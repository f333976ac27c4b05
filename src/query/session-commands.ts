import { usage } from '../errors.ts'
import { type Cell, type Engine, quote } from '../store/engine.ts'
import { hint } from '../suggestion.ts'
import { dotCommands, type Vocabulary } from './completion.ts'
import { setMoment } from './lake.ts'
import { layTable } from './table.ts'
import { endings, type Format, formatOf, formats } from './write.ts'

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
