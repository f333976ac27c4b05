// @module-tag full
import { PassThrough } from 'node:stream'
import { setTimeout } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openLake } from '../../src/index.ts'
import { runSession } from '../../src/interfaces/server/session.ts'
import { openQuery } from '../../src/query/lake.ts'
import { Agent } from '../helpers/agent.ts'
import { pitlake } from '../helpers/command.ts'
import { listening } from '../helpers/listening.ts'
import { lakeOfFile } from '../helpers/lakes/lake-of-file.ts'
import { hundredFetchedDays } from '../helpers/lakes/hundred-fetched-days.ts'
import { Screen } from '../helpers/screen.ts'

/*
 * Queries for which memory, or the disk for what does not fit into it, does not suffice. Each interface refuses them in
 * one line of its own words, without figures or advice of DuckDB, and answers the next query.
 */

const large = 'SELECT list(i) AS x FROM range(30000000) AS r (i)'
const spilling = 'SELECT count(DISTINCT hash(i)) AS x FROM range(9000000) AS r (i)'
const asOf = '2024-03-01'
const tight = ['--memory', '512MB', '--spill', '1MB', '--threads', '1']

const { root: folder } = lakeOfFile(hundredFetchedDays)
let server: Awaited<ReturnType<typeof listening>>
let agent: Agent
beforeAll(async () => {
  server = await listening(folder, ['serve', ...tight])
  agent = await Agent.at(folder, ...tight)
})
afterAll(async () => {
  await agent[Symbol.asyncDispose]()
  await server.stop()
})

/** What an interface answers to a query: the line of its refusal with its status, and its answer to the next one. */
interface Refused {
  readonly line: string
  readonly status: number | string
  readonly next: string
}

async function atHttp(sql: string): Promise<Refused> {
  const ask = async (body: string): Promise<Response> => await fetch(`${server.url}/query`, { method: 'POST', body })
  const answer = await ask(sql)
  const text = await answer.text()
  return { line: text.replace(/\n$/, ''), status: answer.status, next: await (await ask('SELECT 1 AS n')).text() }
}

async function atMcp(sql: string): Promise<Refused> {
  const line = await agent.refusal('query', { sql, as_of: asOf })
  const { rows } = await agent.one('query', { sql: 'SELECT 1 AS n', as_of: asOf })
  return { line, status: 'error', next: `${JSON.stringify(rows[0])}\n` }
}

async function atCommand(sql: string): Promise<Refused> {
  const ask = async (text: string) =>
    await pitlake(folder, ['sql', text, '--data', folder, '--format', 'jsonl', '--memory', '384MB', '--threads', '1'])
  const { message, code } = await ask(sql)
  return { line: message, status: code, next: (await ask('SELECT 1 AS n')).message || '{"n":1}\n' }
}

async function inSession(sql: string): Promise<Refused> {
  using engine = await openQuery(folder, { memoryLimit: '60MB', threads: 1 })
  const input = new PassThrough()
  const screen = new Screen()
  const left = runSession(engine, folder, {
    input,
    output: screen,
    terminal: false,
    size: () => ({ width: 80, height: 24 }),
    now: () => 0,
    sleep: setTimeout,
  })
  input.write(`.timer off\n.format jsonl\n${sql};\nSELECT 1 AS n;\n`)
  await screen.until('row)')
  input.end('.quit\n')
  await left
  const [, line = '', next = ''] = /\nerror: (.*)\n(\{"n":1\}\n)/.exec(screen.text) ?? []
  return { line, status: 'error', next }
}

async function inTypeScript(sql: string): Promise<Refused> {
  const lake = await openLake(folder, { memory: '384MB', threads: 1 })
  try {
    const error = await lake.sql(sql).then(
      () => undefined,
      (thrown: unknown) => thrown as Error & { readonly kind: string },
    )
    const table = await lake.sql('SELECT 1 AS n')
    return { line: error?.message ?? '', status: error?.kind ?? '', next: `{"n":${Number(table.get(0)?.['n'])}}\n` }
  } finally {
    await lake.close()
  }
}

test.each([
  ['HTTP', atHttp, 507, 'memory'],
  ['MCP', atMcp, 'error', 'memory'],
  ['pitlake sql', atCommand, 6, '--memory'],
  ['an interactive session', inSession, 'error', '--memory'],
  ['TypeScript', inTypeScript, 'incomplete', 'memory'],
] as const)('%s: a query larger than the memory is refused in one line of ours', async (_, ask, status, option) => {
  const refused = await ask(large)
  expect(refused.line).toMatch(
    /^SQL: more memory than it may take; query less data at once, or raise it: \S+ [\d.]+[MG]B$/,
  )
  expect(refused.line).toContain(`: ${option} `)
  expect([refused.status, refused.next]).toEqual([status, '{"n":1}\n'])
})

test.each([
  ['HTTP', atHttp, 507],
  ['MCP', atMcp, 'error'],
] as const)('%s: a query larger than its part of the disk is refused in one line of ours', async (_, ask, status) => {
  expect(await ask(spilling)).toEqual({
    line: 'SQL: more disk than it may take; query less data at once, or leave it more of the disk',
    status,
    next: '{"n":1}\n',
  })
})
