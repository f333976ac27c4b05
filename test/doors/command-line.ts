import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { setTimeout } from 'node:timers/promises'
import { openQuery } from '../../src/query/lake.ts'
import { runSession } from '../../src/interfaces/server/session.ts'
import { Engine, quote } from '../../src/lake/store/engine.ts'
import { pitlake } from '../helpers/command.ts'
import { Screen } from '../helpers/screen.ts'
import type { Ask, Door, Given, Place, Question, Said, Value } from './question.ts'
import { linesOf, rowOf } from './values.ts'

/** What a command line knows as session variables. */
const variables: readonly string[] = ['backfill', 'registry_backfill']

const spelt: Door['spelt'] = (option, value) => {
  const [flag, sign] = variables.includes(option) ? [`--set ${option}`, '='] : [`--${option.replaceAll('_', '-')}`, ' ']
  return value === undefined ? flag : `\`${flag}${sign}${value}\``
}

const notesIn = (text: string): readonly string[] => [...text.matchAll(/^note: (.*)$/gm)].map(([, note = '']) => note)
const sqlOf = (ask: Ask): string => ('sql' in ask ? ask.sql : '')
const nothing = async (): Promise<void> => undefined

const textOf = (value: Value | undefined): string => (typeof value === 'string' ? value : JSON.stringify(value))

/** What a flag takes: parts by comma, the parts of a mapping as `name=value`. */
function flagText(name: string, value: Value): string {
  if (Array.isArray(value)) return value.map(textOf).join(',')
  if (typeof value !== 'object' || value === null) return textOf(value)
  return Object.entries(value)
    .map(([part, own]) => (name === 'calendar' ? textOf(own) : `${part}=${textOf(own)}`))
    .join(',')
}

/** `--name value` of each option. */
function flagsOf(given: Given): readonly string[] {
  return Object.entries(given).flatMap(([name, value]) => {
    const flag = `--${name.replaceAll('_', '-')}`
    if (variables.includes(name)) return ['--set', `${name}=${textOf(value)}`]
    if (value === true) return [flag]
    return [flag, flagText(name, value)]
  })
}

/** `sql` and `panel`. */
export async function commandLine({ home, root }: Place): Promise<Door> {
  const out = join(home, 'answer.jsonl')
  const file = join(home, 'decisions.csv')
  const lineOf = ({ ask }: Question): readonly string[] => {
    if ('sql' in ask) return ['sql', ask.sql]
    if (!('panel' in ask)) throw new Error('a question without a command')
    const { decisions, ...rest } = ask.panel
    const flags = flagsOf(rest)
    if (decisions === undefined) return ['panel', ...flags]
    const records = decisions as readonly Given[]
    const names = [...new Set(records.flatMap((one) => Object.keys(one)))]
    writeFileSync(
      file,
      [names, ...records.map((one) => names.map((name) => textOf(one[name])))].map((one) => one.join(',')).join('\n'),
    )
    return ['panel', ...flags, '--decisions', file]
  }
  return {
    name: 'command',
    spelt,
    [Symbol.asyncDispose]: nothing,
    ask: async (question) => {
      const flags = flagsOf(question.knowledge ?? {})
      rmSync(out, { force: true })
      const { message, notes } = await pitlake(home, [...lineOf(question), ...flags, '--data', root, '--out', out])
      // The file is the test's own.
      if (message !== '') return { refused: message.replace(` ${file}`, '').replace(`${home}/`, '') }
      return { rows: linesOf(readFileSync(out, 'utf8')), notes: notesIn(notes) }
    },
  }
}

/** A session, in which a person types all questions one after the other. */
export async function session({ root }: Place): Promise<Door> {
  const engine = await openQuery(root)
  const input = new PassThrough()
  const screen = new Screen()
  const size = () => ({ width: 80, height: 24 })
  const left = runSession(engine, root, {
    input,
    output: screen,
    terminal: false,
    size,
    now: () => 0,
    sleep: setTimeout,
  })
  input.write('.timer off\n.format jsonl\n')
  let asked = 0
  const said = async (...lines: readonly string[]): Promise<string> => {
    const from = screen.text.length
    const end = `the end of ${asked++}`
    input.write([...lines, `SELECT '${end}' AS told;\n`].join('\n'))
    const text = await screen.until(`{"told":"${end}"}`, from)
    return text.slice(0, text.indexOf('{"told":')).replaceAll(/^(?:(?:lake(?: @ [^>]*)?| {3}\.\.\.)> )+/gm, '')
  }
  return {
    name: 'session',
    spelt: (option, value) => (option.endsWith('as_of') ? `.${option}` : spelt(option, value)),
    ask: async ({ ask, knowledge = {} }): Promise<Said> => {
      const begin = Object.entries(knowledge).map(([name, value]) =>
        variables.includes(name) ? `SET VARIABLE ${name} = '${textOf(value)}';` : `.${name} ${textOf(value)}`,
      )
      const ends = Object.keys(knowledge).map((name) =>
        variables.includes(name) ? `SET VARIABLE ${name} = NULL;` : `.${name} now`,
      )
      const before = begin.length === 0 ? '' : await said(...begin)
      const text = before.includes('error: ') ? before : await said(`${sqlOf(ask)};`)
      if (ends.length > 0) await said(...ends)
      const refused = /^error: (.*)$/m.exec(text)?.[1]
      const rows = text.split('\n').filter((line) => line.startsWith('{'))
      return refused === undefined ? { rows: linesOf(rows.join('\n')), notes: notesIn(text) } : { refused }
    },
    [Symbol.asyncDispose]: async () => {
      input.end()
      await left
      engine.close()
    },
  }
}

/** `stamp`: the rows are in its file. */
export async function stamp({ home, root }: Place): Promise<Door> {
  const file = join(home, 'stamped.sql')
  const out = join(home, 'stamped.parquet')
  const engine = await Engine.open()
  return {
    name: 'stamp',
    spelt,
    [Symbol.asyncDispose]: async () => engine.close(),
    ask: async ({ ask, knowledge = {} }) => {
      writeFileSync(file, sqlOf(ask))
      const line = ['stamp', file, ...flagsOf(knowledge), '--data', root, '--out', out]
      const { message } = await pitlake(home, line)
      if (message !== '') return { refused: message }
      return { rows: (await engine.rows(`FROM read_parquet(${quote(out)})`)).map(rowOf) }
    },
  }
}

/** `lookahead`: what it refuses. */
export async function lookahead({ home, root }: Place): Promise<Door> {
  const file = join(home, 'proved.sql')
  return {
    name: 'lookahead',
    spelt,
    [Symbol.asyncDispose]: nothing,
    ask: async ({ ask, knowledge = {} }) => {
      writeFileSync(file, sqlOf(ask))
      const line = ['lookahead', file, ...flagsOf(knowledge), '--cutoffs', '1', '--data', root]
      const { code, message } = await pitlake(home, line)
      return code === 2 ? { refused: message } : {}
    },
  }
}
