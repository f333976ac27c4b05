// @module-tag slow
import { connect } from 'node:net'
import { text as readAll } from 'node:stream/consumers'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { Agent } from '../helpers/agent.ts'
import { pitlake } from '../helpers/command.ts'
import { listening } from '../helpers/listening.ts'
import { lakeOfFile } from '../helpers/lakes/lake-of-file.ts'
import { hundredFetchedDays } from '../helpers/lakes/hundred-fetched-days.ts'

/* Queries at which DuckDB, its parser or Node gives up: each refusal is one line of ours, with the status of its kind. */

const { root: folder } = lakeOfFile(hundredFetchedDays)
let server: Awaited<ReturnType<typeof listening>>
let agent: Agent
beforeAll(async () => {
  server = await listening(folder, ['serve', '--memory', '768MB'])
  agent = await Agent.at(folder, '--memory', '768MB')
})
afterAll(async () => {
  await agent[Symbol.asyncDispose]()
  await server.stop()
})

const asOf = '2024-03-01'
const nested = (open: string, times: number, close: string): string =>
  `SELECT ${open.repeat(times)}1${close.repeat(times)} AS x`
const deep = 'SQL: expected a query that is nested less deeply, got one too deep to read'

test.each([
  [
    'json_keys inside TRY over a grouped column',
    'SELECT TRY(json_keys(currency)) AS g, count(*) FROM points GROUP BY ALL',
    400,
    'SQL: expected a query that DuckDB can run, got an internal error of DuckDB; write it in another way',
  ],
  ['200,000 dots', `SELECT ${'.'.repeat(200_000)}`, 400, 'SQL (line 1 column 8): syntax error at or near ".."'],
  [
    'a column name of 200,000 parts',
    `SELECT a${'.a'.repeat(200_000)}`,
    400,
    'SQL (line 1 column 8): Referenced table "a" not found!',
  ],
  [
    'a table name of 100,000 parts',
    `FROM a${'.a'.repeat(100_000)}`,
    400,
    'SQL: expected a query that names relations in at most three parts, got a longer name',
  ],
  ['100,000 open parentheses', `SELECT ${'('.repeat(100_000)}`, 400, deep],
  ['200,000 parentheses', nested('(', 200_000, ')'), 400, deep],
  ['5,000 lists inside each other', nested('[', 5000, ']'), 400, deep],
  ['300 subqueries inside each other', nested('1 IN (SELECT ', 300, ')'), 400, deep],
  [
    'a value larger than the memory',
    'SELECT array_agg(i) AS x FROM range(2000000000) AS r(i)',
    507,
    /^SQL: more memory than it may take; query less data at once, or raise it: memory \d+MB$/,
  ],
])(
  '%s: HTTP and MCP refuse it in one line of ours, with the right status',
  { timeout: 120_000 },
  async (_, sql, status, words) => {
    const answer = await fetch(`${server.url}/query?as_of=${asOf}`, { method: 'POST', body: sql })
    const text = await answer.text()
    expect(answer.status).toBe(status)
    const told = [text.replace(/\n$/, ''), await agent.refusal('query', { sql, as_of: asOf })]
    for (const line of told) {
      if (typeof words === 'string') expect(line).toBe(words)
      else expect(line).toMatch(words)
      expect(line).not.toMatch(/\n|0x[0-9a-f]|\.so\b|Stack|SET |NOT IMPLEMENTED/)
      expect(line).not.toContain(folder)
    }
    // Nothing of it stays behind.
    const next = await fetch(`${server.url}/query?as_of=${asOf}`, { method: 'POST', body: 'SELECT 1 AS n' })
    expect(await next.text()).toBe('{"n":1}\n')
    if (status === 400)
      expect(await pitlake(folder, ['sql', sql, '--data', folder])).toMatchObject({
        code: 2,
        message: expect.stringContaining(line(words)),
      })
  },
)

test.each([
  [
    '20,000 SELECTs combined by UNION ALL',
    Array.from({ length: 20_000 }, () => 'SELECT 1').join(' UNION ALL '),
    'SQL: expected at most 1000 SELECTs combined by UNION, got 20000; write rows as VALUES, or use several queries',
  ],
  [
    '50,000 terms joined by AND',
    `SELECT count(*) AS n FROM points WHERE ${Array.from({ length: 50_000 }, () => 'true').join(' AND ')}`,
    'SQL: expected at most 10000 terms joined by AND and OR, got 50000; compare with a list, such as x IN (…), or join VALUES',
  ],
  [
    '60,000 terms joined by or, in a WITH',
    `WITH w AS (SELECT 1 AS n WHERE ${Array.from({ length: 60_000 }, () => 'false').join(' or ')}) FROM w`,
    'SQL: expected at most 10000 terms joined by AND and OR, got 60000; compare with a list, such as x IN (…), or join VALUES',
  ],
])('%s: HTTP and MCP refuse them in one line, and answer the next query', async (_, sql, many) => {
  const answer = await ask({ method: 'POST', body: sql })
  expect([answer.status, await answer.text()]).toEqual([400, `${many}\n`])
  expect(await agent.refusal('query', { sql, as_of: asOf })).toBe(many)
  await expectNext()
})

test('a text constant of 10 MB: HTTP and MCP refuse it in one line, and answer the next query', async () => {
  const sql = `SELECT '${'x'.repeat(10_000_000)}' AS x`
  const answer = await ask({ method: 'POST', body: sql })
  expect([answer.status, await answer.text()]).toEqual([400, 'the body: expected at most 1048576 bytes, got more\n'])
  expect(await agent.refusal('query', { sql, as_of: asOf })).toBe(
    'the arguments: expected at most 1048576 bytes, got more',
  )
  await expectNext()
})

test.each([
  [
    'a head of 200,000 dots',
    `GET /query?sql=${'.'.repeat(200_000)} HTTP/1.1\r\n`,
    '431',
    /^the head: expected at most 8192 bytes, got more; .*$/,
  ],
  ['what is no HTTP', 'SELECT 1;\r\n\r\n', '400', /^the request: expected HTTP, got something else$/],
])('%s: HTTP refuses it in one line and answers the next query', async (_, sent, status, words) => {
  const { hostname, port } = new URL(server.url)
  const socket = connect(Number(port), hostname).on('error', () => undefined)
  socket.write(sent)
  const [head = '', line = ''] = (await readAll(socket)).split('\r\n\r\n')
  expect(head).toMatch(new RegExp(`^HTTP/1.1 ${status} `))
  expect(line.replace(/\n$/, '')).toMatch(words)
  await expectNext()
})

const ask = async (init: RequestInit): Promise<Response> => await fetch(`${server.url}/query?as_of=${asOf}`, init)

async function expectNext(): Promise<void> {
  const next = await ask({ method: 'POST', body: 'SELECT 1 AS n' })
  expect(await next.text()).toBe('{"n":1}\n')
  expect((await agent.one('query', { sql: 'SELECT 1 AS n', as_of: asOf })).rows).toEqual([{ n: 1 }])
}

const line = (words: string | RegExp): string => (typeof words === 'string' ? words : '')
