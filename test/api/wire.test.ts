import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, expect, test } from 'vitest'
import { loadCatalogue } from '../../src/catalog/load.ts'
import { fetchKey, fetchOnce } from '../helpers/fetching.ts'
import { mounts } from '../helpers/mounts.ts'
import { temporaryFolder } from '../helpers/folders.ts'
import { ask, noon, withSandbox } from '../helpers/sandbox-client.ts'
import { makeViews, withViews } from '../helpers/views.ts'

/**
 * What goes over the wire, spelled by hand. The program and its sandbox read one table of names: they would agree in
 * any error. Nothing here is taken from that table, nor from the catalogue.
 */
const day = 86_400
const midnight = noon - day / 2
const since = midnight - 4 * day
const days = [0, 1, 2, 3].map((i) => since + i * day)
const futures = 'derivatives/futures_open_interest_cash_margin_sum_pit'

describe.each(mounts.filter(({ name }) => name === 'port'))('the sandbox over the $name', (mount) => {
  const answers = async (path: string, query: Record<string, string | number>): Promise<Record<string, unknown>[]> => {
    let points: Record<string, unknown>[] = []
    await withSandbox(mount, {}, async ({ metricsUrl }) => {
      const search = new URLSearchParams(Object.entries(query).map(([key, value]) => [key, String(value)]))
      const { status, json } = await ask(`${metricsUrl}/v1/metrics/${path}?${search}`, { 'X-Api-Key': 'metrics-key' })
      expect(status).toBe(200)
      points = json as Record<string, unknown>[]
    })
    return points
  }

  test('a point is t, v and computed_at; an object is o: by these names, in seconds', async () => {
    const plain = await answers('supply/current_pit', { a: 'BTC', i: '24h', c: 'native', s: since, u: midnight })
    expect(plain.map(({ t }) => t)).toEqual(days)
    for (const point of plain) {
      expect(Object.keys(point).toSorted()).toEqual(['computed_at', 't', 'v'])
      // Bitcoins that there are, and an instant soon after the day.
      expect(point['v']).toBeGreaterThan(19_000_000)
      expect(point['v']).toBeLessThan(21_000_000)
      expect(point['computed_at']).toBeGreaterThan(Number(point['t']) + day)
      expect(point['computed_at']).toBeLessThan(Number(point['t']) + 2 * day)
    }
    for (const [path, key] of [
      ['options/iv_call_delta_5_pit', 'o'],
      ['addresses/supply_distribution_relative_pit', 'v'],
    ] as const) {
      const nested = await answers(path, { a: 'BTC', i: '24h', s: since, u: midnight })
      expect(nested.map((point) => Object.keys(point).toSorted())).toEqual(
        days.map(() => ['computed_at', 't', key].toSorted()),
      )
      for (const { [key]: value } of nested)
        expect(Object.values(value as object).every((one) => one === null || typeof one === 'number')).toBe(true)
    }
  })

  test('each query key of a request has the effect that its name promises', async () => {
    const asked = { a: 'BTC', i: '24h', c: 'native', e: 'aggregated', s: since, u: midnight }
    const usual = await answers(futures, asked)
    expect(usual).toHaveLength(4)
    const other = async (change: Record<string, string | number>): Promise<Record<string, unknown>[]> =>
      await answers(futures, { ...asked, ...change })
    for (const change of [{ a: 'ETH' }, { c: 'usd' }, { e: 'exchange_1' }]) {
      const points = await other(change)
      expect(points.map(({ t }) => t)).toEqual(days)
      expect(points.map(({ v }) => v)).not.toEqual(usual.map(({ v }) => v))
    }
    expect((await other({ s: since + day })).map(({ t }) => t)).toEqual(days.slice(1))
    expect((await other({ u: midnight - day })).map(({ t }) => t)).toEqual(days.slice(0, 3))
    const hourly = (await other({ i: '1h' })).map(({ t }) => Number(t))
    expect(hourly.length).toBeGreaterThan(90)
    expect(hourly.filter((t) => t % 3600 !== 0 || t < since || t >= midnight)).toEqual([])
    expect((await other({ timestamp_format: 'humanized' })).map(({ t }) => t)).toEqual(
      days.map((t) => new Date(t * 1000).toISOString().replace('.000', '')),
    )
    const active = { a: 'ETH', i: '24h', s: since, u: midnight }
    const [eth, arb] = [
      await answers('addresses/active_count_pit', { ...active, network: 'eth' }),
      await answers('addresses/active_count_pit', { ...active, network: 'arb' }),
    ]
    expect(eth.map(({ t }) => t)).toEqual(days)
    expect(arb.map(({ v }) => v)).not.toEqual(eth.map(({ v }) => v))
    await withSandbox(mount, {}, async ({ metrics }) => {
      expect((await metrics(futures, { ...asked, f: 'csv' })).text).toMatch(/^[a-z_]+,[a-z_]+\n\d+,[\d.e+-]+\n/)
    })
  })
})

test('the program asks with these keys and reads these names', async () => {
  using folder = temporaryFolder('wire')
  const root = folder.path
  const seen: { url: string; key: unknown }[] = []
  const bodies: Readonly<Record<string, string>> = {
    [futures]: `[{"t":${since},"v":1.5,"computed_at":${since + day + 77}},{"t":${since + day},"v":-2},{"t":${since + 2 * day},"v":null},{"t":${since + 3 * day},"v":4}]`,
    'addresses/active_count_pit': `[{"t":${since},"o":{"a":1}},{"t":${since + day},"o":{"a":2}},{"t":${since + 2 * day},"v":{"a":3}}]`,
  }
  const server = createServer((request, response) => {
    const url = request.url ?? ''
    const path = url.replace('/v1/metrics/', '').replace(/\?.*/, '')
    seen.push({ url, key: request.headers['x-api-key'] })
    response.setHeader('date', new Date(noon * 1000).toUTCString())
    if (bodies[path] === undefined) response.writeHead(404).end()
    else response.end(bodies[path])
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const place = { root, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, now: () => noon }
  try {
    const wanted = { since, until: midnight, paths: Object.keys(bodies), currencies: ['usd'], networks: ['arb'] }
    const done = await fetchOnce(place, { assets: ['ETH'], ...wanted }, { input: { catalogue: loadCatalogue() } })
    expect(done).toMatchObject({ points_added: 7, windows: { failed: 0 } })
    expect(new Set(seen.map(({ key }) => key))).toEqual(new Set([fetchKey]))
    const window = { s: String(since), u: String(midnight), i: '24h', f: 'json' }
    const queries = seen.map(({ url }) => [
      url.replace(/\?.*/, ''),
      Object.fromEntries(new URL(url, place.url).searchParams),
    ])
    expect(queries).toEqual(
      expect.arrayContaining([
        ['/v1/metadata/metric', { path: `/${futures}` }],
        [`/v1/metrics/${futures}`, { a: 'ETH', c: 'usd', e: 'aggregated', ...window }],
        ['/v1/metrics/addresses/active_count_pit', { a: 'ETH', network: 'arb', ...window }],
        ['/v1/metrics/assets', {}],
      ]),
    )
    await makeViews(root)
    await withViews(root, async (engine) => {
      const rows = await engine.rows(
        `SELECT metric, epoch(t)::INT - ${since} AS t, v, o, epoch(computed_at)::INT - ${since} AS computed FROM points ORDER BY metric DESC, t`,
      )
      expect(rows.map(({ t, v, o, computed }) => [t, v, o, computed])).toEqual([
        [0, 1.5, null, day + 77],
        [day, -2, null, null],
        [2 * day, null, null, null],
        [3 * day, 4, null, null],
        [0, null, '{"a":1}', null],
        [day, null, '{"a":2}', null],
        [2 * day, null, '{"a":3}', null],
      ])
    })
  } finally {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  }
})
