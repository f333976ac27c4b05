// @module-tag full
import { once } from 'node:events'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { tableFromIPC } from 'apache-arrow'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import type { Deps } from '../../src/interfaces/cli/spec.ts'
import { Engine, quote } from '../../src/lake/store/engine.ts'
import { pitlake } from '../helpers/command.ts'
import { listening, statusWith } from '../helpers/listening.ts'
import { temporaryFolder } from '../helpers/folders.ts'
import { until } from '../helpers/processes.ts'
import { lakeOfFile } from '../helpers/lakes/lake-of-file.ts'
import { hundredFetchedDays } from '../helpers/lakes/hundred-fetched-days.ts'

const token = 'a-token-of-the-server'
const endless = 'SELECT count(*) FROM range(10000000000) a, range(10000000000) b'

/** More than the system keeps for a reader that does not read. */
const long = "SELECT repeat('x', 100000) FROM range(200)"

const serve = async (env: Deps['env'] = {}, flags: readonly string[] = []) =>
  await listening(folder, ['serve', ...flags], env)

const { root: folder } = lakeOfFile(hundredFetchedDays)
let door: Awaited<ReturnType<typeof serve>>
beforeAll(async () => {
  door = await serve()
})
afterAll(async () => {
  await door.stop()
})

async function query(sql: string, params: Record<string, string> = {}, init: RequestInit = {}): Promise<Response> {
  return await fetch(`${door.url}/query?${new URLSearchParams({ sql, ...params }).toString()}`, init)
}

/** What the command line writes into a file. */
async function typed(name: string, ...argv: readonly string[]): Promise<Buffer> {
  const out = join(folder, '..', name)
  expect(await pitlake(folder, [...argv, '--data', folder, '--out', out])).toMatchObject({ message: '' })
  return readFileSync(out)
}

describe('what is answered', () => {
  const sql = 'SELECT metric, asset, t, available_at, v FROM points ORDER BY metric, asset, t'
  const asOf = '2024-03-01'

  test('JSON lines, CSV, JSON, an Arrow stream, Parquet by Accept: the bytes of the command line', async () => {
    const ways = [
      ['application/x-ndjson', 'a.jsonl'],
      ['text/csv', 'a.csv'],
      ['text/html, application/json;q=0.9, */*;q=0.1', 'a.json'],
      ['application/vnd.apache.arrow.stream', 'a.arrows'],
    ]
    for (const [accept = '', name = ''] of ways) {
      const answer = await query(sql, { as_of: asOf }, { headers: { accept } })
      expect(answer.status).toBe(200)
      expect(Buffer.from(await answer.arrayBuffer()).equals(await typed(name, 'sql', '--as-of', asOf, sql)), name).toBe(
        true,
      )
    }
    const parquet = await query(sql, { as_of: asOf, format: 'parquet' })
    const path = join(folder, '..', 'b.parquet')
    writeFileSync(path, Buffer.from(await parquet.arrayBuffer()))
    using engine = await Engine.open()
    const other = join(folder, '..', 'c.jsonl')
    writeFileSync(other, await (await query(sql, { as_of: asOf })).text())
    const [differ] = await engine.rows(
      `SELECT count(*) AS n FROM (SELECT metric, asset, epoch_us(t), v FROM read_parquet(${quote(path)})
       EXCEPT SELECT metric, asset, epoch_us(CAST(t AS TIMESTAMPTZ)), v FROM read_json(${quote(other)}))`,
    )
    expect(differ?.['n']).toBe(0n)
    const empty = await query('SELECT 1 AS a WHERE false', { format: 'arrow' })
    expect(tableFromIPC(new Uint8Array(await empty.arrayBuffer())).schema.fields.map(({ name }) => name)).toEqual(['a'])
    const none = await query(sql, {}, { headers: { accept: 'image/png' } })
    expect([none.status, await none.text()]).toEqual([400, expect.stringContaining('application/vnd.apache.parquet')])
  })

  test('SQL in a body, plain or JSON; version, digest, rows and SQL in the head', async () => {
    const plain = await fetch(`${door.url}/query?as_of=${asOf}`, {
      method: 'POST',
      body: 'SELECT count(*) AS n FROM points',
    })
    expect(await plain.text()).toBe('{"n":236}\n')
    const json = await fetch(`${door.url}/query`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ sql: "SELECT count(*) AS n FROM points WHERE asset = 'BTC'", as_of: asOf }),
    })
    expect(await json.text()).toBe('{"n":118}\n')
    const [lake] = JSON.parse(
      (
        await typed(
          'lake.json',
          'sql',
          'SELECT lake, CAST(version AS VARCHAR) AS version, lake_digest() AS digest FROM lake_info',
        )
      ).toString(),
    ) as Record<string, string>[]
    const head = (name: string): string | null => json.headers.get(`pitlake-${name}`)
    expect(['lake', 'version', 'digest'].map(head)).toEqual([lake?.['lake'], lake?.['version'], lake?.['digest']])
    expect([head('rows'), head('synthetic'), decodeURIComponent(head('sql') ?? '')]).toEqual([
      '1',
      'false',
      "SELECT count(*) AS n FROM points WHERE asset = 'BTC'",
    ])
    const lost = await query("SELECT * FROM points WHERE asset = 'btc'")
    expect(decodeURIComponent(lost.headers.get('pitlake-notes') ?? '')).toContain('BTC')
  })

  test('panels by their address: those of the command line; the judgement', async () => {
    const grid = 'calendar=2024-01-02,2024-01-09,12h&assets=BTC,ETH&metrics=supply/current_pit,indicators/one'
    const panel = await (await fetch(`${door.url}/panel?${grid}`)).text()
    const flags = ['--calendar', '2024-01-02,2024-01-09,12h', '--assets', 'BTC,ETH']
    expect(panel).toBe(
      (await typed('p.jsonl', 'panel', ...flags, '--metrics', 'supply/current_pit,indicators/one')).toString(),
    )
    expect(await (await fetch(`${door.url}/panel?${grid}&explain=true`)).text()).toMatch(/calendar\([\s\S]*pit_long\(/)
    expect((await fetch(`${door.url}/healthz`)).status).toBe(503)
  })
})

describe('what is not', () => {
  test.each([
    ['SELECT 1', { as_of: 'infinity' }, /as_of: expected an instant/],
    ['SELECT 1', { format: 'xlsx' }, /format/],
    ['', {}, /sql/],
  ])('%s %j', async (sql, params, words) => {
    const answer = await query(sql, params)
    expect([answer.status, await answer.text()]).toEqual([400, expect.stringMatching(words)])
  })

  test.each([{ universe: 'true); SELECT 1 WHERE (true' }, { assets: 'BTC', calendar: '2024-01-01' }])(
    'a panel of %j is refused',
    async (changes) => {
      const given = { calendar: '2024-03-01,2024-03-02,1d', metrics: 'supply/current_pit', ...changes }
      const answer = await fetch(`${door.url}/panel?${new URLSearchParams(given).toString()}`)
      expect([answer.status, await answer.text()]).toEqual([
        400,
        expect.stringMatching(/expected one condition, got true|calendar/),
      ])
    },
  )

  test('bodies that are too long, of other signs, no object; methods and paths', async () => {
    const post = async (body: string | Uint8Array<ArrayBuffer>, type = 'text/plain'): Promise<number> =>
      (await fetch(`${door.url}/query`, { method: 'POST', body, headers: { 'content-type': type } })).status
    expect(await post(`SELECT '${'x'.repeat(1 << 20)}'`)).toBe(400)
    expect(await post(`SELECT length('${'x'.repeat(1 << 19)}')`)).toBe(200)
    expect(await post(new Uint8Array([0xff, 0xfe]))).toBe(400)
    for (const body of ['{', '[]', '1', 'null', '{"sql": 1}'])
      expect(await post(body, 'application/json'), body).toBe(400)
    expect((await fetch(`${door.url}/query`, { method: 'HEAD' })).status).toBe(405)
    expect((await fetch(`${door.url}/metrics`, { method: 'POST' })).status).toBe(405)
    expect((await fetch(`${door.url}/else`)).status).toBe(404)
  })
})

describe('what is named twice', () => {
  const one = 'sql=SELECT+count(*)+AS+n+FROM+points&as_of=2024-03-01'
  const other = '2024-01-11'
  const post = async (address: string, body: string, type = 'application/json'): Promise<readonly unknown[]> => {
    const answer = await fetch(`${door.url}${address}`, { method: 'POST', headers: { 'content-type': type }, body })
    return [answer.status, await answer.text()]
  }
  const several = (name: string) => [400, `${name}: expected one value, got several\n`]

  test('is refused in the address, the same value too; in a JSON object at any depth', async () => {
    const get = async (path: string): Promise<readonly unknown[]> => {
      const answer = await fetch(`${door.url}${path}`)
      return [answer.status, await answer.text()]
    }
    expect(await get(`/query?${one}`)).toEqual([200, '{"n":236}\n'])
    expect(await get(`/query?${one}&as_of=${other}`)).toEqual(several('as_of'))
    expect(await get(`/query?${one}&as_of=2024-03-01`)).toEqual(several('as_of'))
    expect(await get(`/query?${one}&as%5Fof=${other}`)).toEqual(several('as_of'))
    expect(await get('/metrics?format=csv&format=json')).toEqual(several('format'))
    const panel = '/panel?calendar=2024-01-02,2024-01-09,12h&metrics=supply/current_pit&assets=BTC'
    expect(await get(`${panel}&assets=ETH`)).toEqual(several('assets'))
    expect(await post('/query', `{"sql": "SELECT 1", "as_of": "${other}", "as_of": "2024-03-01"}`)).toEqual(
      several('as_of'),
    )
    expect(await post('/query', `{"sql": "SELECT 1", "as_of": "${other}", "as\\u005fof": "x"}`)).toEqual(
      several('as_of'),
    )
    const decision = `{"ts": "2024-01-05", "asset": "BTC", "ts": "2024-02-05"}`
    expect(await post('/panel', `{"metrics": ["supply/current_pit"], "decisions": [${decision}]}`)).toEqual(
      several('ts'),
    )
  })

  test('a key with different values in address and body is refused; equal values count as one', async () => {
    const sql = 'SELECT count(*) AS n FROM points'
    const body = JSON.stringify({ sql, as_of: '2024-03-01' })
    expect(await post(`/query?as_of=${other}`, body)).toEqual(several('as_of'))
    expect(await post('/query?as_of=2024-03-01', body)).toEqual([200, '{"n":236}\n'])
    expect(await post(`/query?${one}`, 'SELECT 1', 'text/plain')).toEqual(several('sql'))
    expect(await post(`/query?${one}`, sql, 'text/plain')).toEqual([200, '{"n":236}\n'])
    const asked = { metrics: ['supply/current_pit'], decisions: [{ ts: '2024-01-05', asset: 'BTC' }] }
    const panel = JSON.stringify({ ...asked, skip_nulls: true })
    expect(await post('/panel?metrics=supply/current_pit,indicators/one', panel)).toEqual(several('metrics'))
    expect(await post('/panel?skip_nulls=false', panel)).toEqual(several('skip_nulls'))
    expect((await post('/panel?skip_nulls=true&metrics=supply/current_pit', panel))[0]).toBe(200)
    // Texts with the signs of an object, and equal names in objects beside each other, are nothing twice.
    const two = [1, 2].map((n) => ({ ts: '2024-01-05', asset: 'BTC', note: `{"ts":"${n}"},"ts":` }))
    expect((await post('/panel', JSON.stringify({ ...asked, decisions: two })))[0]).toBe(200)
  })
})

test('who may ask: with a token who knows it; without one this machine by its name, and no page of another', async () => {
  const { port } = new URL(door.url)
  const path = '/query?sql=SELECT+1'
  expect(await statusWith(`${door.url}${path}`, { host: `localhost:${port}` })).toBe(200)
  expect(await statusWith(`${door.url}${path}`, { host: `rebound.example:${port}` })).toBe(401)
  expect(await statusWith(`${door.url}${path}`, { origin: 'https://elsewhere.example' })).toBe(401)
  expect(await statusWith(`${door.url}${path}`, { origin: 'null' })).toBe(401)
  for (const [site, answered] of [
    ['same-origin', 200],
    ['none', 200],
    ['same-site', 403],
    ['cross-site', 403],
    ['', 403],
  ] as const)
    for (const each of [path, '/metrics'])
      expect(await statusWith(`${door.url}${each}`, { 'sec-fetch-site': site }), site).toBe(answered)
  const guarded = await serve({ PITLAKE_TOKEN: token })
  const known = { authorization: `Bearer ${token}`, 'sec-fetch-site': 'cross-site' }
  expect(await statusWith(`${guarded.url}${path}`, known)).toBe(403)
  const status = async (url: string, authorization?: string): Promise<number> =>
    (await fetch(`${guarded.url}${url}`, authorization === undefined ? {} : { headers: { authorization } })).status
  for (const each of ['/query?sql=SELECT+1', '/panel', '/metrics', '/healthz', '/else']) {
    const more = each.includes('?') ? '&' : '?'
    for (const wrong of ['', `${more}token=`, `${more}token=${token}x`, `${more}token=${token.slice(1)}`])
      expect(await status(`${each}${wrong}`), each + wrong).toBe(401)
    expect(await status(each, `Bearer ${token}x`)).toBe(401)
    expect(await status(each, `Bearer ${token}`), each).not.toBe(401)
  }
  expect(await status(`/query?sql=SELECT+1&token=${token}`)).toBe(200)
  await guarded.stop()
  const outside = await pitlake(folder, ['serve', '--data', folder, '--listen', '0.0.0.0:0'])
  expect([outside.code, outside.message]).toEqual([2, expect.stringContaining('PITLAKE_TOKEN')])
})

describe('many at once', () => {
  test('a hundred requests at the same time: the same answer for all', async () => {
    const sql = 'SELECT metric, asset, t, v FROM points ORDER BY ALL'
    const answers = await Promise.all(
      Array.from({ length: 100 }, async (_, n) => {
        const answer = await query(sql, { format: n % 5 === 0 ? 'csv' : 'jsonl' })
        return `${answer.status} ${await answer.text()}`
      }),
    )
    expect(new Set(answers).size).toBe(2)
    expect(answers.every((text) => text.startsWith('200 '))).toBe(true)
  })

  test('who goes away takes his query along, also one that waits; a stop ends what is under way; nothing is left', async () => {
    using home = temporaryFolder('serve')
    const parts = (): number =>
      readdirSync(home.path, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.part')).length
    vi.stubEnv('TMPDIR', home.path)
    // Far beyond what a test may take: what is not cancelled is not mistaken for what ended in time.
    const own = await serve({}, ['--timeout', '1h'])
    vi.unstubAllEnvs()
    const never = `${own.url}/query?sql=${encodeURIComponent(endless)}`
    const gone = new AbortController()
    const left = Array.from({ length: 6 }, async () => await fetch(never, { signal: gone.signal }))
    const ends = Promise.allSettled(left)
    await until(() => parts() === 2, 'two answers at work')
    gone.abort()
    expect((await ends).every(({ status }) => status === 'rejected')).toBe(true)
    expect(await (await fetch(`${own.url}/query?sql=SELECT+3+AS+three`)).text()).toBe('{"three":3}\n')
    await until(() => parts() === 0, 'the end of the others')
    const asked = Promise.allSettled([fetch(never)])
    await until(() => parts() === 1, 'an answer at work')
    expect(await own.stop()).toMatchObject({ code: 0 })
    await asked
    expect(readdirSync(home.path)).toEqual([])
  })

  test('a client that does not read delays no other client', async () => {
    const idle = await Promise.all(
      Array.from({ length: 4 }, async () => await unread(`/query?sql=${encodeURIComponent(long)}`)),
    )
    expect(await (await query('SELECT 3 AS three')).text()).toBe('{"three":3}\n')
    for (const socket of idle) socket.destroy()
  })

  test('a query that takes too long is ended, and the lake goes on', async () => {
    const hasty = await serve({}, ['--timeout', '1s'])
    const late = await fetch(`${hasty.url}/query?sql=${encodeURIComponent(endless)}`)
    expect([late.status, await late.text()]).toEqual([504, expect.stringContaining('took longer than 1s')])
    expect((await fetch(`${hasty.url}/query?sql=SELECT+1`)).status).toBe(200)
    expect(await hasty.stop()).toMatchObject({ code: 0 })
  })

  test('a query that takes more memory or disk than it may is refused, and the lake goes on', async () => {
    const small = await serve({}, ['--memory', '512MB', '--spill', '1MB', '--threads', '1'])
    for (const [sql, what] of [
      ['SELECT list(i) FROM range(30000000) AS r (i)', 'memory'],
      ['SELECT count(DISTINCT hash(i)) FROM range(9000000) AS r (i)', 'disk'],
    ] as const) {
      const refused = await fetch(`${small.url}/query?${new URLSearchParams({ sql }).toString()}`)
      expect([refused.status, await refused.text()]).toEqual([507, expect.stringContaining(`more ${what} than it may`)])
    }
    expect((await fetch(`${small.url}/query?sql=SELECT+1`)).status).toBe(200)
    expect(await small.stop()).toMatchObject({ code: 0 })
    expect(
      await pitlake(folder, ['serve', '--data', folder, '--listen', '127.0.0.1:0', '--spill', 'much']),
    ).toMatchObject({ code: 2, message: expect.stringContaining('expected a size such as 512MB or 16GB, got much') })
  })
})

/** Asks, waits for the head of the answer and reads no further. */
async function unread(path: string): Promise<Socket> {
  const { hostname, port } = new URL(door.url)
  const socket = connect(Number(port), hostname)
  socket.write(`GET ${path} HTTP/1.1\r\nhost: ${hostname}:${port}\r\n\r\n`)
  await once(socket, 'readable')
  return socket
}
