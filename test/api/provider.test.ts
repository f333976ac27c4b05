import { request } from 'undici'
import { describe, expect, test } from 'vitest'
import { defaultLimits, parseLimit } from '../../src/sandbox/limits.ts'
import { mounts } from '../helpers/mounts.ts'
import { ask, noon, withSandbox } from '../helpers/sandbox-client.ts'

const path = 'supply/current_pit'
const week = { a: 'BTC', i: '24h', c: 'native', s: noon - 7 * 86_400, u: noon }
const limits = (...texts: string[]) => texts.reduce((onto, text) => parseLimit(text, onto), defaultLimits)

describe.each(mounts)('both APIs over $name', (mount) => {
  test('undici and fetch both get there', () =>
    withSandbox(mount, {}, async ({ metrics, metricsUrl, sandbox }) => {
      const viaUndici = await metrics(path, week)
      const search = new URLSearchParams(Object.entries(week).map(([name, value]) => [name, String(value)]))
      const url = `${metricsUrl}/v1/metrics/${path}?${search}`
      const viaFetch = await fetch(url, { headers: { 'x-api-key': 'metrics-key' } })
      expect(viaUndici.status).toBe(200)
      expect(viaUndici.json.length).toBeGreaterThan(4)
      expect(await viaFetch.json()).toEqual(viaUndici.json)
      expect(viaUndici.headers['x-pitlake-sandbox']).toBe('11')
      expect(viaUndici.headers['date']).toBe('Wed, 05 Jun 2024 12:00:00 GMT')
      expect(sandbox.requests()).toHaveLength(2)
    }))

  test('keys: header or query for metrics, bearer only for the registry', () =>
    withSandbox(mount, {}, async ({ metrics, metricsUrl, registry, registryUrl, sandbox }) => {
      const bare = `${metricsUrl}/v1/metrics/${path}?a=BTC`
      expect((await ask(bare)).status).toBe(401)
      const wrong = await ask(bare, { 'x-api-key': 'wrong' })
      expect([wrong.status, wrong.json]).toEqual([401, { error: 'invalid API key' }])
      expect((await ask(`${bare}&api_key=wrong`)).status).toBe(401)
      expect((await ask(`${metricsUrl}/v1/metrics/assets`)).status).toBe(401)
      expect((await ask(`${bare}&api_key=metrics-key`)).status).toBe(200)
      expect((await metrics(path, { a: 'BTC' })).status).toBe(200)
      expect((await ask(`${registryUrl}/issuers`)).json.error.code).toBe('unauthorized')
      const { status, headers } = await ask(`${registryUrl}/issuers?api_key=registry-key`)
      expect([status, headers['x-pitlake-sandbox'], Date.parse(String(headers['date']))]).toEqual([
        401,
        '11',
        noon * 1000,
      ])
      expect((await registry('/issuers')).status).toBe(200)
      expect(JSON.stringify(sandbox.requests())).not.toMatch(/[mr]-key/)
    }))

  test('a long history is streamed: the first bytes come before the last are made', () =>
    withSandbox(mount, {}, async ({ metricsUrl }) => {
      const url = `${metricsUrl}/v1/metrics/addresses/active_count_pit?a=BTC&i=10m&s=1514764800`
      const response = await request(url, { headers: { 'x-api-key': 'metrics-key' } })
      const sizes: number[] = []
      for await (const chunk of response.body) sizes.push((chunk as Buffer).length)
      expect(sizes.length).toBeGreaterThan(20)
      expect(sizes.reduce((a, b) => a + b)).toBeGreaterThan(4_000_000)
    }))

  test('a caller who goes away stops the answer, and the next one is served', () =>
    withSandbox(mount, {}, async ({ metrics, metricsUrl }) => {
      const url = `${metricsUrl}/v1/metrics/addresses/active_count_pit?a=BTC&i=10m&s=1514764800`
      const response = await request(url, { headers: { 'x-api-key': 'metrics-key' } })
      response.body.on('error', () => undefined)
      response.body.destroy()
      expect((await metrics(path, week)).status).toBe(200)
    }))

  test('registry: lists, detail, snapshot, feed, entity tags', () =>
    withSandbox(mount, {}, async ({ registry }) => {
      const first = await registry('/products?limit=150')
      const ids = first.json.data.map(({ id }: { id: string }) => id)
      const second = await registry(`/products?limit=150&cursor=${encodeURIComponent(first.json.next_cursor)}`)
      expect(ids).toEqual(ids.toSorted())
      expect(second.json.data[0].id > ids.at(-1)).toBe(true)
      const detail = await registry(`/products/${ids[0]}`)
      expect(detail.json.data).toEqual(first.json.data[0])
      const etag = String(detail.headers['etag'])
      const again = await registry(`/products/${ids[0]}`, { 'if-none-match': etag })
      expect([again.status, again.bytes.length]).toEqual([304, 0])
      expect(again.headers['x-ratelimit-remaining']).toBeDefined()
      const snapshot = await registry('/snapshot')
      expect(snapshot.json.products.length).toBeGreaterThan(100)
      const changes = await registry(`/changes?since=${encodeURIComponent(snapshot.json.cursor)}`)
      expect(changes.json).toMatchObject({ data: [], has_more: false })
      expect((await registry('/changes/head')).json.cursor).toBe(snapshot.json.cursor)
      expect((await registry('/changes?since=nonsense')).json.error.code).toBe('invalid_cursor')
      expect((await registry('/products/no-such-id')).json.error.code).toBe('not_found')
      for (const name of ['x-ratelimit-limit', 'x-ratelimit-reset', 'x-quota-daily-limit', 'x-quota-daily-remaining']) {
        expect(snapshot.headers[name], name).toMatch(/^\d+$/)
      }
    }))

  test('limits: refused requests, their codes, headers and dialects', () => {
    let clock = noon
    const options = {
      now: () => clock,
      limits: limits(
        'metrics=fixed:2/60s,headers=date,retry-after=date',
        'registry=fixed:5/60s,daily=7,snapshots=1,headers=unix',
      ),
    }
    return withSandbox(mount, options, async ({ metrics, registry }) => {
      const answers = [await metrics(path, week), await metrics(path, week), await metrics(path, week)]
      expect(answers.map(({ status }) => status)).toEqual([200, 200, 429])
      expect(answers[2]?.headers['retry-after']).toBe('Wed, 05 Jun 2024 12:01:00 GMT')
      expect(answers[0]?.headers['x-ratelimit-reset']).toBe('Wed, 05 Jun 2024 12:01:00 GMT')
      expect((await registry('/snapshot')).status).toBe(200)
      const held = await registry('/snapshot')
      expect([held.status, held.json.error.code, held.headers['retry-after']]).toEqual([429, 'snapshot_limit', '43200'])
      const rest: number[] = []
      for (let i = 0; i < 4; i++) rest.push((await registry('/changes/head')).status)
      expect(rest).toEqual([200, 200, 200, 200])
      const limited = await registry('/changes/head')
      expect([limited.status, limited.json.error.code]).toEqual([429, 'rate_limited'])
      expect(limited.headers['x-ratelimit-reset']).toBe(String(noon + 60))
      expect(limited.json.request_id).toBe(limited.headers['x-request-id'])
      clock += 60
      expect((await metrics(path, week)).status).toBe(200)
      expect([(await registry('/changes/head')).status, (await registry('/changes/head')).status]).toEqual([200, 200])
      const spent = await registry('/changes/head')
      expect([spent.json.error.code, spent.headers['x-quota-daily-remaining']]).toEqual(['quota_exceeded', '0'])
    })
  })
})

describe('the port alone', () => {
  const port = mounts.filter(({ name }) => name === 'port')

  test.each(port)('compresses when asked to and says so', (mount) =>
    withSandbox(mount, {}, async ({ metrics, registry }) => {
      const long = { a: 'BTC', i: '24h', c: 'native' }
      const plain = await metrics(path, long)
      const packed = await metrics(path, long, { 'accept-encoding': 'br, gzip' })
      expect(plain.headers['content-encoding']).toBeUndefined()
      expect(packed.headers['content-encoding']).toBe('gzip')
      expect(packed.bytes.length).toBeLessThan(plain.bytes.length / 2)
      expect(packed.text).toBe(plain.text)
      const refused = await metrics(path, long, { 'accept-encoding': 'gzip;q=0' })
      expect(refused.headers['content-encoding']).toBeUndefined()
      const snapshot = await registry('/snapshot', { 'accept-encoding': 'gzip' })
      expect(snapshot.json.products.length).toBeGreaterThan(100)
    }),
  )
})
