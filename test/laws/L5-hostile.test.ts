import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { expect, test } from 'vitest'
import type { Outcome } from '../../src/sources/http/outcome.ts'
import type { Asker } from '../../src/sources/http/ask.ts'
import { type AskOne, requestRow } from '../../src/sources/http/request-rows.ts'
import { readFeed, readWhole, type RegistryAsking } from '../../src/sources/registry/reading.ts'
import { fetchOnce } from '../helpers/fetching.ts'
import { type Answers, withProvider } from '../helpers/provider.ts'
import { catalogue } from '../helpers/sandbox-client.ts'
import { reading } from '../helpers/ledgers.ts'
import { temporaryFolder } from '../helpers/folders.ts'

type AnsweredRequest = Awaited<ReturnType<AskOne>>

type AskRequest = Parameters<Asker['ask']>[0]

const now = Date.UTC(2026, 2, 4, 12) / 1000
const since = now - 30 * 86_400

test('a compressed body that would fill the disk is judged once, not halved down to its days', async () =>
  withProvider(now, async (own) => {
    const bomb = gzipSync(Buffer.alloc(200_000_000, ' '))
    const answers: Answers = (path) => {
      if (path === 'assets') return ['BTC']
      return { status: 200, text: bomb, headers: { 'content-encoding': 'gzip' } }
    }
    own.answer(answers)
    const done = await own.fetch({ assets: ['BTC'], paths: ['supply/current_pit'], since })
    expect(done).toMatchObject({ requests: 1, windows: { failed: 1 }, points_added: 0 })
  }))

test('an address that never answered gives a lake no name', async () => {
  using rootFolder = temporaryFolder('nobody')
  const root = rootFolder.path
  const place = { root, url: 'https://nobody.example/api', now: () => now }
  const deps = { proxy: { https: 'http://127.0.0.1:9' } }
  const done = await fetchOnce(place, { assets: ['BTC'], paths: ['supply/*'], since }, { deps })
  expect(done).toMatchObject({ stopped_by: 'unreachable', version: 0 })
  await reading(root, (ledger) => expect(ledger.head().provider).toBeNull())
  await withProvider(now, async (own) => {
    own.answer((path, query) => (path === 'assets' ? ['BTC'] : [{ t: Number(query.get('s')), v: 1 }]))
    const there = { ...place, url: own.url }
    expect(await fetchOnce(there, { assets: ['BTC'], paths: ['supply/current_pit'], since })).toMatchObject({
      stopped_by: null,
      version: expect.any(Number) as number,
    })
  })
})

/** More than any reading of these tests may ask: one that goes round is ended and named, it does not hang. */
const mostRequests = 1_100

/** The asking of a registry that answers each request with what it is told to. */
async function registry(
  answer: (n: number, url: URL) => unknown,
  work: (asking: RegistryAsking, asked: () => number) => Promise<void>,
  clock: () => number = () => now * 1000,
): Promise<void> {
  using kept = temporaryFolder('circles')
  const folder = kept.path
  let asked = 0
  const told = {
    status: 200,
    at: 0,
    date: null,
    requestMs: 1,
    etag: null,
    requestId: null,
    sandbox: null,
    age: 0,
  } as const
  const ask = async ({ id, url, file }: AskRequest): Promise<AnsweredRequest> => {
    if (asked >= mostRequests) throw new Error(`still asking after ${mostRequests} requests, now ${url}`)
    writeFileSync(file, JSON.stringify(answer(++asked, new URL(url))))
    return toldOf({ id, url }, { kind: 'body', file, bytes: readFileSync(file).length, ...told })
  }
  const unused = (): never => {
    throw new Error('not of this test')
  }
  const asking: RegistryAsking = {
    connection: { base: 'http://127.0.0.1/v1', ask, spool: { file: () => join(folder, 'body.json') } },
    requests: [],
    nextId: () => `r-${asked}`,
    storedAnswer: () => undefined,
    onOutcome: () => undefined,
    quarantine: unused,
    now: clock,
  }
  await work(asking, () => asked)
  expect(existsSync(folder)).toBe(true)
}

function toldOf({ id, url }: Pick<AskRequest, 'id' | 'url'>, outcome: Outcome): AnsweredRequest {
  return { outcome, at: 0, row: requestRow({ id, run: 'r', api: 'registry', url, at: 0, attempts: 1 }, outcome, {}) }
}

const issuer = { entity_type: 'issuer', entity_id: 'i1', op: 'updated', record: { id: 'i1', name: 'x' } }
const { resources } = catalogue

test.each<[string, (n: number) => unknown]>([
  ['a new one each time, and nothing on the pages', (n) => ({ data: [], next_cursor: `c${n}`, has_more: true })],
  ['a new one each time, and the same event again', (n) => ({ data: [issuer], next_cursor: `c${n}`, has_more: true })],
  ['two by turns', (n) => ({ data: [issuer], next_cursor: `c${n % 2}`, has_more: true })],
])('a feed whose cursors have no end (%s) is left', async (_, answer) =>
  registry(answer, async (asking, asked) => {
    const seen = new Set<string>()
    const news = ({ id }: { id: string }): boolean => seen.size < seen.add(id).size
    const feed = await readFeed(asking, resources, 'c', 500, news)
    expect(feed.stopped).toMatchObject({ by: 'failed', words: expect.stringContaining('without an end') as string })
    expect(asked()).toBeLessThanOrEqual(1_001)
    expect(feed.pages).toBe(asked())
  }),
)

test('a feed with news on every page is read for so long, and goes on from there', async () => {
  let time = now * 1000
  await registry(
    (n) => ({
      data: [{ ...issuer, entity_id: `i${n}`, record: { id: `i${n}` } }],
      next_cursor: `c${n}`,
      has_more: true,
    }),
    async (asking, asked) => {
      const feed = await readFeed(asking, resources, 'c', 500, () => true)
      expect(feed).toMatchObject({ stopped: { by: 'budget' }, cursor: `c${asked()}`, events: asked(), invalid: false })
      expect(asked()).toBeLessThanOrEqual(361)
    },
    () => (time += 60_000),
  )
})

/** The lists of a registry that refuses the whole snapshot by its limit; gives what came of them. */
async function lists(asking: RegistryAsking): Promise<Awaited<ReturnType<typeof readWhole>>> {
  const head = { status: 429, at: 0, date: null, age: 0, requestMs: 1, etag: null, requestId: null } as const
  const words = { sandbox: null, words: 'limited', code: 'snapshot_limit' } as const
  const limited: Outcome = { kind: 'limited', waitMs: null, ...head, ...words }
  const { ask } = asking.connection
  const connection = {
    ...asking.connection,
    ask: async (request: AskRequest) =>
      request.url.includes('/snapshot') ? toldOf(request, limited) : await ask(request),
  }
  return await readWhole({ ...asking, connection }, resources, 500)
}

test('a list whose pages go round ends the reading of the lists', async () =>
  registry(
    (n, url) =>
      url.pathname.endsWith('/head')
        ? { cursor: 'h' }
        : { data: [{ id: `i${n % 3}`, name: 'x' }], next_cursor: `c${n}`, has_more: true },
    async (asking, asked) => {
      expect(await lists(asking)).toMatchObject({ kind: 'stopped', by: 'failed' })
      expect(asked()).toBeLessThan(10)
    },
  ))

test('a list with news on every page is read for so long and no longer', async () => {
  let time = now * 1000
  await registry(
    (n, url) =>
      url.pathname.endsWith('/head')
        ? { cursor: 'h' }
        : { data: [{ id: `i${n}`, name: 'x' }], next_cursor: `c${n % 3}`, has_more: true },
    async (asking, asked) => {
      expect(await lists(asking)).toMatchObject({ kind: 'stopped', by: 'failed' })
      expect(asked()).toBeLessThanOrEqual(400)
    },
    () => (time += 60_000),
  )
})
