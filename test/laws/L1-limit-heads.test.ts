// @module-tag full
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { markRoot, pageFiles } from '../../src/interfaces/page/files.ts'
import { longestQuestion } from '../../src/interfaces/server/bounds.ts'
import { pathNames } from '../../src/interfaces/server/paths.ts'
import { openQuery } from '../../src/query/lake.ts'
import { Agent } from '../helpers/agent.ts'
import { pitlake } from '../helpers/command.ts'
import { listening, sleep } from '../helpers/listening.ts'
import { lakeOfFile } from '../helpers/lakes/lake-of-file.ts'
import { hundredFetchedDays } from '../helpers/lakes/hundred-fetched-days.ts'

/*
 * A server with --as-of T names nothing that came after T, neither in an answer nor in what is sent with it: heads,
 * notes, footers, refusals. The lake has two commits: the registry of 2024-02-01, and the points of 2024-04-10.
 */

const limits = { 'before the first commit': '2024-01-20T00:00:00Z', 'between the commits': '2024-03-01T00:00:00Z' }
type Limit = keyof typeof limits
const where = Object.keys(limits) as Limit[]

interface Commit {
  readonly version: bigint
  readonly committed_at: string
  readonly digest: string
}

const { root: folder } = lakeOfFile(hundredFetchedDays)
let commits: readonly Commit[] = []
const servers = new Map<string, Awaited<ReturnType<typeof listening>>>()
const agents = new Map<string, Agent>()

beforeAll(async () => {
  using engine = await openQuery(folder)
  commits = await engine.rows<{ version: bigint; committed_at: string; digest: string }>(
    'SELECT version, committed_at, digest FROM versions ORDER BY version',
  )
  for (const [name, limit] of Object.entries(limits)) {
    servers.set(name, await listening(folder, ['serve', '--as-of', limit]))
    agents.set(name, await Agent.at(folder, '--as-of', limit))
  }
})
afterAll(async () => {
  for (const server of servers.values()) await server.stop()
  for (const agent of agents.values()) await agent[Symbol.asyncDispose]()
})

/** What a text names of the time after the limit: instants, and digests of later commits. */
function laterIn(text: string, limit: Limit): readonly string[] {
  const until = Date.parse(limits[limit])
  const instants = [...text.matchAll(/\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d)?)?/g)].map(([instant]) => instant)
  const late = instants.filter((instant) => Date.parse(instant.includes(':') ? `${instant}Z` : instant) > until)
  const later = commits.filter(({ committed_at }) => Date.parse(committed_at) > until)
  return [...late, ...later.map(({ digest }) => digest).filter((digest) => text.includes(digest))]
}

/** Questions about what became known or was done after both limits; none names a timestamp itself. */
const lost = [
  'SELECT * FROM lake_info',
  "SELECT * FROM points WHERE metric = 'indicators/one' AND t < TIMESTAMPTZ '2023-01-01'",
  "SELECT v FROM points WHERE asset = 'nobody'",
  'SELECT * FROM universe WHERE status = $$none$$',
  'SELECT * FROM versions',
  'SELECT * FROM requests',
  "SELECT * FROM points WHERE metric = 'indicators/none'",
  'SELECT nothing FROM points',
]

/** What is asked at each path of the server: its address, or the body of a POST. */
const asked: Readonly<Record<string, readonly (string | { readonly body: object })[]>> = {
  '/query': [
    ...lost.map((sql) => `?sql=${encodeURIComponent(sql)}`),
    { body: { sql: 'SELECT 1', as_of: '2024-01-10' } },
  ],
  '/panel': ['?calendar=2023-01-01,2023-01-03,1d&assets=BTC,nobody&metrics=indicators/one,indicators/none'],
  '/metrics': [''],
  '/lookahead': ['?sql=SELECT+1'],
  '/explain': [{ body: { result: 'AAAA' } }],
  '/when': [{ body: { table: 'AAAA' } }],
  '/healthz': [''],
  '/elsewhere': [''],
}

/** What each tool is called with; a list is several calls. */
const called: Readonly<Record<string, readonly object[]>> = {
  metrics: [{ rows: 2 }],
  describe: ['supply/current_pit', 'versions', 'lake_version', 'indicators/none'].map((name) => ({
    name,
    as_of: '2024-01-10',
    rows: 2,
  })),
  query: lost.map((sql) => ({ sql, as_of: '2024-01-10', show_sql: true })),
  panel: [
    {
      calendar: { since: '2023-01-01', until: '2023-01-03', step: '1d' },
      assets: ['BTC'],
      metrics: ['indicators/one'],
    },
  ],
  universe: [{ ts: '2024-01-10' }],
  lookahead: [{ sql: 'SELECT 1' }],
  status: [{}],
}

test.each(where)('%s: every path answers without a timestamp, version or digest after the limit', async (limit) => {
  expect(Object.keys(asked)).toEqual(expect.arrayContaining([...pathNames]))
  for (const [path, questions] of Object.entries(asked))
    for (const question of questions) {
      const init =
        typeof question === 'string'
          ? {}
          : { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(question.body) }
      const answer = await fetch(
        `${servers.get(limit)?.url}${path}${typeof question === 'string' ? question : ''}`,
        init,
      )
      // The time of the answer itself is no fact of the lake.
      const head = [...answer.headers]
        .filter(([name]) => name !== 'date')
        .map((line) => decodeURIComponent(line.join(': ')))
      const told = `${head.join('\n')}\n\n${await answer.text()}`
      expect(laterIn(told, limit), `${path} ${JSON.stringify(question)}\n${told}`).toEqual([])
      expect(head.filter((line) => /^pitlake-(?:version|digest):/.test(line))).toEqual([])
    }
})

test.each(where)('%s: every tool answers without a timestamp, version or digest after the limit', async (limit) => {
  const agent = agents.get(limit)
  const { tools = [] } = (await agent?.client.listTools()) ?? {}
  expect(Object.keys(called).toSorted()).toEqual(tools.map(({ name }) => name).toSorted())
  for (const [tool, calls] of Object.entries(called))
    for (const given of calls) {
      const { text = '', refused = false } = (await agent?.ask(tool, { ...given })) ?? {}
      expect(laterIn(text, limit), `${tool} ${JSON.stringify(given)}\n${text}`).toEqual([])
      if (!refused) expect(JSON.parse(text)).toMatchObject({ lake: { version: null, digest: null, synthetic: false } })
    }
})

test('the page of a server with a limit is the files of the program with the longest request, and holds no data', async () => {
  for (const { name, bytes } of await pageFiles()) {
    const answer = await fetch(`${servers.get('between the commits')?.url}/${name === 'index.html' ? '' : name}`)
    const expected = name === 'index.html' ? markRoot(bytes, `data-longest-request="${longestQuestion}"`) : bytes
    expect(Buffer.from(await answer.arrayBuffer()).equals(expected), name).toBe(true)
  }
})

test('a limit after the newest commit lets every answer name its version and digest', async () => {
  const limit = '2024-05-01'
  const newest = commits.at(-1)
  const server = await listening(folder, ['serve', '--as-of', limit])
  const { headers } = await fetch(`${server.url}/query?sql=SELECT+1&as_of=2024-01-10`)
  await server.stop()
  expect([headers.get('pitlake-version'), headers.get('pitlake-digest')]).toEqual([
    String(newest?.version),
    newest?.digest,
  ])
  await using agent = await Agent.at(folder, '--as-of', limit)
  const { lake } = await agent.one('query', { sql: 'SELECT 1', as_of: '2024-01-10' })
  expect(lake).toMatchObject({ version: Number(newest?.version), digest: newest?.digest })
})

test('a page written with --as-of names no version and no digest after the limit', async () => {
  const out = join(folder, '..', 'site')
  const argv = ['serve', '--export', out, '--data', folder, '--as-of', limits['between the commits'], '--instants', '1']
  expect(await pitlake(folder, argv, {}, { sleep })).toMatchObject({ code: 0 })
  const index = readFileSync(join(out, 'data', 'index.json'), 'utf8')
  expect(JSON.parse(index)).toMatchObject({ lake: { synthetic: false } })
  expect(JSON.parse(index)).not.toMatchObject({ lake: { version: expect.anything() } })
  for (const name of readdirSync(join(out, 'data')))
    expect(laterIn(readFileSync(join(out, 'data', name), 'utf8'), 'between the commits'), name).toEqual([])
})
