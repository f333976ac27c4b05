// @module-tag full
import { once } from 'node:events'
import { request } from 'node:http'
import { connect, type Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import { setTimeout } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { Agent } from '../helpers/agent.ts'
import { listening } from '../helpers/listening.ts'
import { need } from '../helpers/needs.ts'
import { lakeOfFile } from '../helpers/lakes/lake-of-file.ts'
import { hundredFetchedDays } from '../helpers/lakes/hundred-fetched-days.ts'

const endless = 'SELECT count(*) FROM range(10000000000) a, range(10000000000) b'

const { root: folder } = lakeOfFile(hundredFetchedDays)
let server: Awaited<ReturnType<typeof listening>>
beforeAll(async () => {
  // Far beyond what a test may take: a place is not free because the time of a query is over.
  server = await listening(folder, ['serve', '--timeout', '1h'])
})
afterAll(async () => {
  await server.stop()
})

/** The answer to a query that is sent from an address of this machine. */
async function queryFrom(localAddress: string, sql: string, signal?: AbortSignal, program?: string): Promise<string> {
  const { port } = new URL(server.url)
  const path = `/query?sql=${encodeURIComponent(sql)}`
  const headers = program === undefined ? {} : { 'pitlake-client': program }
  const sent = request({ host: '127.0.0.1', port, path, localAddress, headers, ...(signal && { signal }) }).end()
  const [response] = (await once(sent, 'response')) as [NodeJS.ReadableStream]
  return await text(response)
}

test('eight endless queries of one client leave the query of another its place', async (context) => {
  need(context, 'linux')
  const gone = new AbortController()
  const slow = Promise.allSettled(
    Array.from({ length: 8 }, async () => await queryFrom('127.0.0.1', endless, gone.signal)),
  )
  // They are under way, or wait, when a ninth of the same client is.
  await expect(queryFrom('127.0.0.1', endless, AbortSignal.timeout(1500))).rejects.toThrow()
  for (const word of ['first', 'second'])
    expect(await queryFrom('127.0.0.2', `SELECT '${word}' AS word`, AbortSignal.timeout(20_000))).toBe(
      `{"word":"${word}"}\n`,
    )
  gone.abort()
  expect((await slow).every(({ status }) => status === 'rejected')).toBe(true)
  expect(await queryFrom('127.0.0.1', 'SELECT 1 AS n', AbortSignal.timeout(20_000))).toBe('{"n":1}\n')
})

test('a program that names itself gets the next place of its address before the queue of another one', async () => {
  const first = new AbortController()
  const gone = new AbortController()
  const ask = async (signal: AbortSignal): Promise<string> => await queryFrom('127.0.0.1', endless, signal, 'greedy')
  const earliest = ask(first.signal)
  await setTimeout(1000)
  const greedy = Promise.allSettled([earliest, ...Array.from({ length: 4 }, async () => await ask(gone.signal))])
  // Two of them are under way, the others wait, when a sixth is.
  await expect(queryFrom('127.0.0.1', endless, AbortSignal.timeout(1500), 'greedy')).rejects.toThrow()
  const modest = queryFrom('127.0.0.1', 'SELECT 1 AS n', AbortSignal.timeout(30_000), 'modest')
  await expect(queryFrom('127.0.0.1', endless, AbortSignal.timeout(500), 'greedy')).rejects.toThrow()
  first.abort()
  try {
    expect(await modest).toBe('{"n":1}\n')
  } finally {
    gone.abort()
    await greedy
  }
})

test('eight hundred half-sent heads leave room for a query', async () => {
  const { port } = new URL(server.url)
  const crowd: Socket[] = []
  for (let n = 0; n < 800; n++) {
    const socket = connect(Number(port), '127.0.0.1').on('error', () => undefined)
    await once(socket, 'connect')
    socket.write('GET /query?sql=SELECT+1 HTTP/1.1\r\nhost: 127')
    crowd.push(socket)
  }
  for (let n = 0; n < 5; n++)
    expect(await queryFrom('127.0.0.1', `SELECT ${n} AS n`, AbortSignal.timeout(20_000))).toBe(`{"n":${n}}\n`)
  for (const socket of crowd) socket.destroy()
})

test('functions that sleep are refused over HTTP and MCP', async () => {
  await using agent = await Agent.at(folder)
  for (const sql of [
    'SELECT pg_sleep(60)',
    'SELECT sleep_ms(60000)',
    'SELECT system.main.pg_sleep(60)',
    'SELECT v FROM points WHERE pg_sleep(v) IS NULL',
  ]) {
    expect(await queryFrom('127.0.0.1', sql)).toMatch(/got (?:pg_sleep|sleep_ms)/)
    expect(await agent.refusal('query', { sql, as_of: '2024-03-01' })).toMatch(/got (?:pg_sleep|sleep_ms)/)
  }
})
