import { describe, expect, test } from 'vitest'
import type { Endpoint } from '../../src/catalog/catalogue.ts'
import { streamPoints } from '../../src/sandbox/metrics-body.ts'
import { answerMetrics } from '../../src/sandbox/metrics.ts'
import { worldAssets } from '../../src/sandbox/world/assets.ts'
import { assetHas } from '../../src/sandbox/world/points.ts'
import { ask, at, base, catalogue, endpoints, now, type Point, points } from './sandbox-metrics-ask.ts'
import { floor, formatInstant, type Interval } from '../../src/base/time.ts'

async function refusal(...args: Parameters<typeof ask>): Promise<string> {
  const response = ask(...args)
  expect(response.status).toBe(400)
  const body = (await response.json()) as { error: string }
  return body.error
}

const assetFor = (endpoint: Endpoint): string => worldAssets.find((asset) => assetHas(endpoint.ask, asset))?.id ?? ''

/** Every combination of an endpoint's parameters, over a short range where it takes one. */
function* combinations(endpoint: Endpoint): Iterable<Record<string, string>> {
  const or = (list: readonly string[]): readonly (string | undefined)[] => [undefined, ...list]
  for (const i of or(endpoint.intervals)) {
    const days = i === '1w' || i === '1month' ? 100 : 6
    const range = endpoint.since ? { s: String(Math.floor(now) - days * 86_400), u: String(Math.floor(now)) } : {}
    for (const c of or(endpoint.currencies)) {
      for (const e of or(endpoint.exchanges)) {
        for (const network of or(endpoint.networks)) {
          const chosen = Object.entries({ i, c, e, network }).filter(([, value]) => value !== undefined)
          yield { a: assetFor(endpoint), ...range, ...(Object.fromEntries(chosen) as Record<string, string>) }
        }
      }
    }
  }
}

/** Endpoints without a range always send their whole history: asked in the year of its beginning, it is short. */
const clockFor = (endpoint: Endpoint): { now: () => number } =>
  endpoint.since ? { now: () => now } : { now: () => at('2020-06-01') }

const decoded = (format: string | undefined, text: string): number =>
  format === 'csv' ? text.trimEnd().split('\n').length - 1 : (JSON.parse(text) as unknown[]).length

describe('all endpoints', () => {
  test('the sandbox has endpoints', () => expect(endpoints.length).toBeGreaterThan(0))

  test('every combination of parameter values is answered with points on the grid', async () => {
    let asked = 0
    for (const endpoint of endpoints) {
      const env = clockFor(endpoint)
      for (const query of combinations(endpoint)) {
        const list = await points(endpoint.path, query, env)
        const stray = list.filter(
          ({ t, computed_at }) =>
            floor(t, (query.i ?? '24h') as Interval) !== t || !((computed_at ?? Infinity) <= env.now()),
        )
        expect(list.length, `${endpoint.path} ${JSON.stringify(query)}`).toBeGreaterThan(0)
        expect(stray).toEqual([])
        asked++
      }
    }
    expect(asked).toBeGreaterThan(1000)
  }, 300_000)

  test('every format and timestamp format is answered', async () => {
    for (const endpoint of endpoints) {
      for (const f of endpoint.format ? ['json', 'csv'] : [undefined]) {
        for (const timestamp_format of ['unix', 'humanized']) {
          const range = endpoint.since ? { s: String(at('2025-01-01')) } : {}
          const query = { a: assetFor(endpoint), ...range, ...(f ? { f } : {}), timestamp_format }
          const response = ask(endpoint.path, query, clockFor(endpoint))
          expect(response.status).toBe(200)
          expect(response.headers.get('content-type')).toContain(f ?? 'json')
          expect(decoded(f, await response.text())).toBeGreaterThan(0)
        }
      }
    }
  }, 300_000)
})

test('an unknown endpoint gets 404 and a POST 405', () => {
  const url = 'http://127.0.0.1:1/v1/metrics/supply/current_pit?a=BTC'
  const posted = new Request(url, { method: 'POST', headers: { 'x-api-key': 'secret' } })
  expect([ask('nothing_pit').status, answerMetrics(posted, base).status]).toEqual([404, 405])
})

describe('a wrong parameter is named', () => {
  const path = 'addresses/active_count_pit'
  test.each([
    ['unknown', path, 'a=BTC&foo=1', "'foo'"],
    ['repeated', path, 'a=BTC&i=24h&i=1h', "'i'"],
    ['missing asset', path, '', "'a'"],
    ['unknown asset', path, 'a=NOPE', "'a'"],
    ['asset in another case', path, 'a=Btc', "'a'"],
    ['asset without the metric', 'eth2/attestation_count_pit', 'a=BTC', "'a'"],
    ['interval', 'market/btc_dominance_pit', 'a=BTC&i=1h', "'i'"],
    ['currency', 'supply/current_pit', 'a=BTC&c=eur', "'c'"],
    ['currency not taken', path, 'a=BTC&c=usd', "'c'"],
    ['exchange', 'derivatives/futures_open_interest_cash_margin_sum_pit', 'a=BTC&e=exchange_99', "'e'"],
    ['network', path, 'a=BTC&network=avax', "'network'"],
    ['format', path, 'a=BTC&f=xml', "'f'"],
    ['timestamp format', path, 'a=BTC&timestamp_format=iso', "'timestamp_format'"],
    ['since in milliseconds', path, 'a=BTC&s=1709251200000', "'s'"],
    ['since as text', path, 'a=BTC&s=2024-01-01', "'s'"],
    ['until', path, 'a=BTC&u=1.5', "'u'"],
    ['until before since', path, 'a=BTC&s=1700000000&u=1600000000', "'u'"],
    ['range not taken', 'options/25delta_skew_call_put_all_pit', 'a=BTC&s=1', "'s'"],
    ['interval not taken', 'options/50delta_skew_call_put_all_pit', 'a=BTC&i=24h', "'i'"],
    ['format not taken', 'options/50delta_skew_call_put_all_pit', 'a=BTC&f=csv', "'f'"],
  ])('%s', async (_, at, query, name) => expect(await refusal(at, query)).toContain(name))
})

describe('what is answered', () => {
  test('the range is half-open, ascending, and ends at what is known by now', async () => {
    const list = await points('supply/current_pit', {
      a: 'BTC',
      s: String(at('2025-11-01')),
      u: String(at('2025-11-05')),
    })
    expect(list.map(({ t }) => formatInstant(t).slice(0, 10))).toEqual([
      '2025-11-01',
      '2025-11-02',
      '2025-11-03',
      '2025-11-04',
    ])
    expect(await points('supply/current_pit', { a: 'BTC', s: '1700000000', u: '1700000000' })).toEqual([])
    const recent = await points('supply/current_pit', { a: 'BTC', i: '1h' })
    expect(recent.length).toBeGreaterThan(1000)
    expect(recent.filter(({ t }) => t + 3600 > now)).toEqual([])
    expect(await points('supply/current_pit', { a: 'ONDO', u: String(at('2020-01-01')) })).toEqual([])
  })

  test('an omitted parameter has its default', async () => {
    const window = { a: 'ETH', s: String(at('2025-10-01')), u: String(at('2025-11-01')) }
    const plain = await points('addresses/active_count_pit', window)
    expect(plain).toEqual(await points('addresses/active_count_pit', { ...window, i: '24h', network: 'eth' }))
    expect(plain).not.toEqual(await points('addresses/active_count_pit', { ...window, network: 'aggregated' }))
    const interest = 'derivatives/futures_open_interest_cash_margin_sum_pit'
    expect(await points(interest, window)).toEqual(await points(interest, { ...window, c: 'native', e: 'aggregated' }))
  })

  test('csv and humanized say the same as json', async () => {
    for (const path of ['market/btc_dominance_pit', 'indicators/accumulation_trend_score_by_wallet_size_30d_pit']) {
      const query = { a: 'BTC', s: String(at('2024-01-01')) }
      const list = (await points(path, query)) as (Point & { o?: unknown })[]
      const [head, ...lines] = (await ask(path, { ...query, f: 'csv' }).text()).trimEnd().split('\n')
      expect(head).toBe('timestamp,value')
      expect(lines).toHaveLength(list.length)
      for (const [i, line] of lines.entries()) {
        const comma = line.indexOf(',')
        expect(Number(line.slice(0, comma))).toBe(list[i]?.t)
        const cell = line.slice(comma + 1)
        const text = cell.startsWith('"') ? cell.slice(1, -1).replaceAll('""', '"') : cell
        expect(text === '' ? null : JSON.parse(text)).toEqual(list[i]?.v === undefined ? list[i]?.o : list[i]?.v)
      }
      const human = await points(path, { ...query, timestamp_format: 'humanized' })
      expect(human.map(({ t }): unknown => t)).toEqual(list.map(({ t }) => formatInstant(t)))
      const both = await ask(path, { ...query, f: 'csv', timestamp_format: 'humanized' }).text()
      expect(both.split('\n')[1]).toMatch(/^\d{4}-\d\d-\d\dT00:00:00Z,/)
    }
  })

  test('points are sent as they are, each number as the same double', async () => {
    const held = [{ t: 5, v: -0.0, 'odd "key"': [1, 2 ** 53 + 2] }, ...[5e-324, 0.1 + 0.2].map((v) => ({ t: 6, v }))]
    const sent = await new Response(streamPoints(held, { csv: false, humanized: false })).text()
    const [first, others] = [
      '{"t":5,"v":-0,"odd \\"key\\"":[1,9007199254740994]}',
      '{"t":6,"v":5e-324},{"t":6,"v":0.30000000000000004}',
    ]
    expect(sent).toBe(`[${first},${others}]`)
  })

  test('an answer is generated only while it is read', async () => {
    let made = 0
    function* endless() {
      for (let t = 0; ; t += 600) {
        made++
        yield { t, v: t / 7, computed_at: t + 900 }
      }
    }
    const body = streamPoints(endless(), { csv: false, humanized: false })
    expect(made).toBe(0)
    const reader = body.getReader()
    await reader.read()
    const afterOne = made
    expect(afterOne).toBeGreaterThan(500)
    expect(afterOne).toBeLessThan(3000)
    await reader.cancel()
    expect(made).toBe(afterOne)
  })

  test('the seed decides the values of an answer', async () => {
    const text = (seed: number): Promise<string> => ask('indicators/aviv_pit', { a: 'BTC' }, { seed }).text()
    expect(await text(1)).toBe(await text(1))
    expect(await text(1)).not.toBe(await text(2))
  })
})

describe('listings', () => {
  test('assets are those born by now, with their contracts', async () => {
    const all = (await ask('assets').json()) as { id: string; address?: string }[]
    expect(all.map(({ id }) => id)).toEqual(worldAssets.map(({ id }) => id))
    expect(all.find(({ id }) => id === 'PAXG')?.address).toMatch(/^0x/)
    const early = (await ask('assets', {}, { now: () => at('2016-01-01') }).json()) as { id: string }[]
    expect(early.map(({ id }) => id)).toEqual(['BTC', 'ETH', 'LTC', 'DOGE', 'XRP'])
  })

  test('endpoints are listed as the catalogue has them', async () => {
    const listed = (await ask('endpoints').json()) as Record<string, unknown>[]
    expect(listed).toHaveLength(catalogue.endpoints.size)
    for (const row of listed) {
      const { path, intervals, currencies, exchanges, networks, since, until, format, timestampFormat } =
        catalogue.endpoints.get(String(row['path'])) as Endpoint
      const expected = { path, intervals, currencies, exchanges, networks, since, until, format }
      expect(row).toEqual({ ...expected, timestamp_format: timestampFormat })
    }
  })

  test('renamed query keys are obeyed', async () => {
    const wire = { ...catalogue.wire, queryKeys: { ...catalogue.wire.queryKeys, interval: 'interval' } }
    const env = { catalogue: { ...catalogue, wire } }
    expect(ask('supply/current_pit', { a: 'BTC', interval: '1w' }, env).status).toBe(200)
    expect(await refusal('supply/current_pit', { a: 'BTC', i: '1w' }, env)).toContain("'i'")
  })

  test('a new row of a catalogue is answered without further words', async () => {
    const novel: Endpoint = { ...(endpoints[0] as Endpoint), path: 'novel/flow_count_pit', ask: 'novel/flow_count_pit' }
    const env = { catalogue: { ...catalogue, endpoints: new Map([[novel.path, novel]]) } }
    expect((await points('novel/flow_count_pit', { a: 'SOL' }, env)).length).toBeGreaterThan(100)
  })
})
