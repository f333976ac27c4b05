import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { Client } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import type { Table } from 'apache-arrow'
import { type Lake, noted, openLake, rows } from '../../src/index.ts'
import { listening } from '../helpers/listening.ts'
import type { Door, Given, Place, Question, Said } from './question.ts'
import { linesOf, rowOf } from './values.ts'

const project = fileURLToPath(new URL('../../', import.meta.url))

/** How an option with its value is typed in an object. */
const field =
  (named: (option: string) => string, mark: string): Door['spelt'] =>
  (option, value) =>
    value === undefined
      ? named(option)
      : `\`${named(option)}: ${/^(?:true|false|\d+)$/.test(value) ? value : `${mark}${value}${mark}`}\``
const snake = (name: string): string => name
const camel = (name: string): string => name.replaceAll(/_(\w)/g, (_, letter: string) => letter.toUpperCase())

/** `serve`: every question by POST. */
export async function serve({ root }: Place): Promise<Door> {
  const { url, stop } = await listening(root, ['serve'])
  const requestOf = ({ ask, knowledge = {} }: Question): readonly [path: string, body?: object] => {
    if ('sql' in ask) return ['/query', { ...ask, ...knowledge }]
    return 'panel' in ask ? ['/panel', { ...ask.panel, ...knowledge }] : ['/metrics']
  }
  return {
    name: 'serve',
    spelt: field(snake, '"'),
    ask: async (question) => {
      const [path, body] = requestOf(question)
      const headers = { 'content-type': 'application/json' }
      const answer = await fetch(`${url}${path}`, body && { method: 'POST', headers, body: JSON.stringify(body) })
      const text = await answer.text()
      if (answer.status !== 200) return { refused: text.trimEnd() }
      const header = (name: string): string => answer.headers.get(name) ?? ''
      const notes = header('pitlake-notes')
        .split(' ')
        .filter((one) => one !== '')
        .map(decodeURIComponent)
      return { rows: linesOf(text), notes, noted: JSON.parse(decodeURIComponent(header('pitlake-noted')) || '[]') }
    },
    [Symbol.asyncDispose]: async () => void (await stop()),
  }
}

interface Page extends Omit<Required<Said>, 'refused'> {
  readonly cursor: string | null
}

/**
 * `mcp`: one process, to which an agent speaks. An instant is mandatory there: one after all is given where none is.
 */
export async function mcp({ root }: Place): Promise<Door> {
  const client = new Client({ name: 'test', version: '1' })
  const args = [`${project}src/main.ts`, 'mcp', '--data', root, '--allow', 'backfill,registry_backfill']
  await client.connect(new StdioClientTransport({ command: process.execPath, args, stderr: 'ignore' }))
  const callOf = ({ ask, knowledge = {} }: Question): readonly [tool: string, given: Record<string, unknown>] => {
    if ('sql' in ask) return ['query', { as_of: '2100-01-01', ...ask, ...knowledge }]
    const [tool, given] = Object.entries(ask)[0] as [string, Given]
    return [tool, { ...given, ...knowledge }]
  }
  return {
    name: 'mcp',
    spelt: field(snake, '"'),
    ask: async (question) => {
      const [name, given] = callOf(question)
      const pages: Page[] = []
      for (let cursor: string | null | undefined; cursor !== null; ) {
        const { content, isError } = await client.callTool({ name, arguments: { ...given, ...(cursor && { cursor }) } })
        const text = (content as readonly { text: string }[]).map((one) => one.text).join('\n')
        if (isError === true) return { refused: text }
        pages.push(JSON.parse(text) as Page)
        cursor = pages.at(-1)?.cursor ?? null
      }
      const rows = pages.flatMap((page) => page.rows.map(rowOf))
      return { rows, notes: pages.flatMap((page) => page.notes), noted: pages.flatMap((page) => page.noted) }
    },
    [Symbol.asyncDispose]: async () => await client.close(),
  }
}

/** The library: a lake for each state of knowledge. */
export async function library({ root }: Place): Promise<Door> {
  const lakes = new Map<string, Lake>()
  const camels = (given: Given): object =>
    Object.fromEntries(Object.entries(given).map(([name, value]) => [camel(name), value]))
  const lakeAt = async (knowledge: Given): Promise<Lake> => {
    const key = JSON.stringify(knowledge)
    const lake = lakes.get(key) ?? (await openLake(root, camels(knowledge)))
    lakes.set(key, lake)
    return lake
  }
  // Casts: the options come from YAML, and some of them are wrong on purpose.
  const answer = async (lake: Lake, ask: Question['ask']): Promise<Table> => {
    if ('sql' in ask) return await lake.sql(ask.sql)
    if ('panel' in ask) return await lake.panel(camels(ask.panel) as never)
    if ('join' in ask) return await ('n' in ask.join ? lake.window : lake.pitJoin)(camels(ask.join) as never)
    if ('points' in ask) return await lake.points(camels(ask.points))
    if ('calendar' in ask) return await lake.calendar(ask.calendar as never)
    return 'universe' in ask ? await lake.universe(ask.universe.ts) : await lake.metrics()
  }
  return {
    name: 'library',
    spelt: (option, value) => (option === 'ts' ? 'at' : field(camel, "'")(option, value)),
    ask: async ({ ask, knowledge = {} }) => {
      try {
        const lake = await lakeAt(knowledge)
        const table = await answer(lake, ask)
        return { rows: rows(table).map((row) => rowOf(row)), notes: lake.notes, noted: noted(lake) }
      } catch (error) {
        return { refused: error instanceof Error ? error.message : String(error) }
      }
    },
    [Symbol.asyncDispose]: async () => {
      for (const lake of lakes.values()) await lake.close()
    },
  }
}

/** The package of Python: one process, a line a question. */
export async function python({ root }: Place, interpreter: string): Promise<Door> {
  const env = { ...process.env, PITLAKE_DATA: root, PYTHONDONTWRITEBYTECODE: '1' }
  const peer: ChildProcessWithoutNullStreams = spawn(interpreter, ['test/python/doors.py'], { cwd: project, env })
  let failed = ''
  peer.stderr.on('data', (part: Buffer) => (failed += part.toString()))
  const lines = createInterface(peer.stdout)[Symbol.asyncIterator]()
  return {
    name: 'python',
    spelt: (option, value) => {
      if (value === undefined) return option === 'ts' ? 'as_of' : option
      const typed: Readonly<Record<string, string>> = { true: 'True', false: 'False' }
      return `\`${option}=${typed[value] ?? (/^\d+$/.test(value) ? value : `'${value}'`)}\``
    },
    ask: async ({ ask, knowledge = {} }) => {
      peer.stdin.write(`${JSON.stringify({ ask, knowledge })}\n`)
      const { value, done } = await lines.next()
      if (done === true) throw new Error(failed)
      const said = JSON.parse(value) as Said
      return { ...said, ...(said.rows && { rows: said.rows.map(rowOf) }) }
    },
    [Symbol.asyncDispose]: async () => void peer.stdin.end(),
  }
}
