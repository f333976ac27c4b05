import { PassThrough } from 'node:stream'
import { setTimeout } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Desk } from '../../src/interfaces/server/session-manager.ts'
import { serveMcp } from '../../src/interfaces/server/mcp.ts'
import { pageBytes, type Pages } from '../../src/interfaces/server/result-pages.ts'
import { type Tool, toolsOf } from '../../src/interfaces/server/tools.ts'
import type { Note } from '../../src/query/note-texts.ts'
import { Engine } from '../../src/lake/store/engine.ts'

type AnswerPage = Awaited<ReturnType<Pages['first']>>

const facts = { lake: 'l', version: 1, digest: 'd', synthetic: true }
const never = new AbortController().signal

let engine: Engine
beforeAll(async () => {
  engine = await Engine.open()
  await engine.run(`CREATE VIEW endpoints AS SELECT 'supply/current_pit' AS metric; CREATE SCHEMA history;
    CREATE VIEW history.products AS SELECT 1 AS a; CREATE VIEW universe AS SELECT 1 AS a; CREATE MACRO pit_join(d) AS d`)
})
afterAll(() => engine.close())

/** The tools of a desk whose every page is this one, and whose standing is that. */
function tools(page: Partial<AnswerPage> = {}, standing: object = {}): readonly Tool[] {
  const run = { folder: 'lake', sleep: setTimeout }
  const desk: Pick<Desk, 'means' | 'sit' | 'turn'> = {
    means: { folder: 'lake', memory: 0, spill: 0, ledgerNow: true, limited: false, allowed: [] },
    sit: async () => ({ engine, facts, opening: 1, [Symbol.dispose]: () => undefined }),
    turn: async (_, work) => await work(run),
  }
  const given: AnswerPage = { facts, columns: [], sql: 'SELECT 1', rows: [], cursor: null, notes: [], ...page }
  const pages: Pick<Pages, 'first' | 'next'> = { first: async () => given, next: async () => given }
  return toolsOf({ desk: desk as Desk, pages: pages as Pages, standing: async () => standing })
}

async function call(name: string, args: object, ...given: Parameters<typeof tools>): Promise<Record<string, unknown>> {
  const text = await tools(...given)
    .find((one) => one.name === name)
    ?.call(args, { client: 'a', closed: never })
  expect(Buffer.byteLength(text ?? '')).toBeLessThanOrEqual(pageBytes)
  return JSON.parse(text ?? '') as Record<string, unknown>
}

const universe = { ts: '2024-03-01' }

test('a page has as many notes as fit, as words and as data, and the number left out', async () => {
  const note = (n: number): Note => ({ code: 'unknown-asset', subject: `${n}${'x'.repeat(300)}` })
  const some = Array.from({ length: 60 }, (_, n) => note(n))
  const { notes, noted, left_out, row_count, rows } = await call('universe', universe, { notes: some, rows: ['{}'] })
  const told = (notes as unknown[]).length
  expect(told).toBeGreaterThan(3)
  expect([noted, left_out, row_count, rows]).toEqual([some.slice(0, told), { notes: 60 - told }, 1, [{}]])
  const few = await call('universe', universe, { notes: some.slice(0, 2) })
  expect([few['noted'], 'left_out' in few]).toEqual([some.slice(0, 2), false])
})

test('a document that is too long loses half of its longest list until it fits, and says so', async () => {
  const list = (bytes: number): string[] => Array.from({ length: 64 }, (_, n) => `${n}${'x'.repeat(bytes)}`)
  const { long, short, left_out } = await call('status', {}, {}, { long: list(1200), short: list(20) })
  expect([(long as unknown[]).length, (short as unknown[]).length, left_out]).toEqual([8, 64, { long: 56 }])
  const text = 'x'.repeat(pageBytes)
  const refused = `the answer: expected at most ${pageBytes} bytes, got `
  const bytes = JSON.stringify({ lake: facts, text }).length
  await expect(call('status', {}, {}, { text })).rejects.toThrow(`${refused}${bytes}`)
  await expect(call('status', {}, {}, { text, list: [1] })).rejects.toThrow(refused)
})

test.each([
  ['supply/curent_pit', 'supply/current_pit'],
  ['history.product', 'history.products'],
  ['univers', 'universe'],
  ['pit_joins', 'pit_join'],
])('a description of %s mentions %s', async (name, near) => {
  const words = `${name}: expected a metric, a view or a macro, got an unknown name; did you mean \`${near}\`?`
  await expect(call('describe', { name, as_of: '2024-03-01' })).rejects.toThrow(words)
})

interface Told {
  readonly result?: { readonly tools?: readonly { readonly name: string; readonly inputSchema: object }[] }
}

test('each argument of a tool is described for agents', async () => {
  const input = new PassThrough()
  const output = new PassThrough({ encoding: 'utf8' })
  const noted: string[] = []
  const close = await serveMcp({
    tools: tools(),
    version: '1',
    secrets: [],
    input,
    output,
    note: (text) => noted.push(text),
  })
  const client = { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'test', version: '1' } }
  const lines = [
    { id: 1, method: 'initialize', params: client },
    { method: 'notifications/initialized' },
    { id: 2, method: 'tools/list', params: {} },
  ]
  input.write(lines.map((line) => `${JSON.stringify({ jsonrpc: '2.0', ...line })}\n`).join(''))
  let said = ''
  for await (const part of output) if ((said += String(part)).includes('"tools":')) break
  await close()
  const told = said
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Told)
  const schemas = Object.fromEntries(
    told.flatMap(({ result }) => result?.tools ?? []).map(({ name, inputSchema }) => [name, inputSchema]),
  )
  expect(noted).toEqual([])
  const text = { type: 'string' }
  expect(schemas['panel']).toMatchObject({
    properties: {
      interval: { type: 'string', enum: expect.arrayContaining(['10m', '24h', '1month']) },
      fields: { type: 'array', items: { type: 'string', enum: expect.arrayContaining(['v']) }, minItems: 1 },
      latency: { type: ['string', 'number'], examples: ['15m', '2d', 0] },
      decisions: { items: { type: 'object', properties: { ts: text, asset: text }, required: ['ts'] }, minItems: 1 },
      calendar: { required: ['since', 'until', 'step'], additionalProperties: false },
      metrics: { anyOf: [{ type: 'array' }, { additionalProperties: text, minProperties: 1 }] },
      rows: { type: 'integer', minimum: 1, maximum: 2000 },
    },
    additionalProperties: false,
  })
  expect(schemas).toMatchObject({ query: { required: ['sql', 'as_of'] }, universe: { required: ['ts'] } })
})
