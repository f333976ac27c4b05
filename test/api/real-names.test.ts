import { describe, expect, test } from 'vitest'
import { worldAssets } from '../../src/sandbox/world/assets.ts'
import { mounts } from '../helpers/mounts.ts'
import { realKeys, withRealProvider } from '../helpers/real-provider.ts'
import { ask, type Answer, catalogue, type Client, withSandbox } from '../helpers/sandbox-client.ts'

const now = Date.UTC(2026, 2, 4, 12) / 1000
const week = { i: '24h', s: now - 7 * 86_400 }

/** A provider with real names, with ways to ask for metadata and points. */
interface Provider extends Client {
  readonly metadata: (place: string) => Promise<Answer>
}

async function asProvider(test: (provider: Provider) => Promise<void>, options: object = {}): Promise<void> {
  const [mount] = mounts
  if (mount === undefined) throw new Error('no mount')
  await withSandbox(mount, { names: 'real', now: () => now, ...options }, async (client) => {
    await test({
      ...client,
      metadata: async (place) => await ask(`${client.metricsUrl}/v1/metadata/${place}`, { 'x-api-key': 'metrics-key' }),
    })
  })
}

/** Metadata of one path, as far as this test reads them. */
interface Described {
  readonly parameters: Readonly<Record<string, readonly string[]>>
  readonly parameters_defaults: { readonly e?: readonly string[] }
}

/** An asset of the metrics API with its contracts. */
interface ListedAsset {
  readonly id: string
  readonly symbol: string
  readonly blockchains: readonly { readonly blockchain: string; readonly address: string }[]
}

const placeholder = /exchange_\d|lendingprotocol|paymentapp|usexchange/

describe('the metadata of a provider with real names', () => {
  test('list every path with and without _pit, and no placeholder', async () =>
    asProvider(async ({ metadata }) => {
      const { json: listed } = await metadata('metrics')
      expect(listed).toEqual(listed.toSorted())
      expect(listed).toEqual(
        expect.arrayContaining(['/addresses/accumulation_balance', '/addresses/accumulation_balance_pit']),
      )
      expect(listed.filter((path: string) => placeholder.test(path))).toEqual([])
      const lacking = [...catalogue.endpoints.keys()].filter((path) => !listed.includes(`/${path}`))
      expect(lacking).toEqual([
        'protocols/lendingprotocol_v3_available_liquidity_sum_by_token_pit',
        'signals/btc_bss_goldilocks_short_pit',
        'market/usexchange_premium_pit',
        'distribution/balance_paymentapp_pit',
      ])
    }))

  test('describe a path in the recorded shape', async () =>
    asProvider(async ({ metadata }) => {
      const path = 'derivatives/futures_open_interest_cash_margin_sum_pit'
      const { json } = await metadata(`metric?path=/${path}&a=BTC`)
      expect(json).toMatchObject({
        path: `/${path}`,
        tier: 2,
        parameters: { a: ['BTC'], c: ['native', 'usd'], f: ['csv', 'json'], i: ['10m', '1h', '24h'] },
        parameters_defaults: { e: ['aggregated'] },
        queried: { path: `/${path}`, a: 'BTC' },
        refs: { metric_variant: { bulk: `/${path}/bulk`, pit: `/${path}` } },
        bulk_supported: true,
        descriptors: { group: 'Derivatives', tags: [] },
      })
      expect(json.parameters.e).toEqual(expect.arrayContaining(['aggregated', 'binance', 'bitcoin.de', 'gate.io']))
      expect(json.parameters.e).toHaveLength(15)
      expect(json.timerange.min).toBeLessThan(json.timerange.max)
    }))

  test('name one path without a default exchange, and one word that two paths fit', async () =>
    asProvider(async ({ metadata }) => {
      const options = [...catalogue.endpoints.values()].filter(({ exchanges }) =>
        exchanges.includes('options_exchange_1'),
      )
      const described = await Promise.all(
        options.map(async ({ path }) => (await metadata(`metric?path=/${path}`)).json),
      )
      expect(described.filter(({ parameters_defaults }) => parameters_defaults.e === undefined)).toMatchObject([
        { path: '/options/iv_call_delta_50_pit', parameters: { e: ['binance', 'bybit', 'deribit', 'okx'] } },
      ])
      const { json: listed } = await metadata('metrics')
      expect(listed.filter((path: string) => /^\/distribution\/balance_[a-z]+_pit$/.test(path))).toEqual([
        '/distribution/balance_cashapp_pit',
        '/distribution/balance_strike_pit',
      ])
    }))

  test('give lag statistics by interval, in the recorded shape', async () =>
    asProvider(async ({ metadata }) => {
      const { json } = await metadata('metric/stats?path=/blockchain/block_count_pit&a=BTC')
      expect(json).toMatchObject({ lag: [{ unit: 'seconds', window: '30d' }] })
      const { resolution } = json.lag[0]
      expect(Object.keys(resolution)).toEqual(['10m', '1h', '24h', '1w'])
      for (const { p50, p90, p95, p99 } of Object.values<Record<string, number>>(resolution))
        expect([p50, p90, p95, p99]).toEqual([p50, p90, p95, p99].toSorted((a, b) => Number(a) - Number(b)))
      expect(resolution['24h'].p50).toBeGreaterThan(60)
    }))

  test('list assets with their contracts by chain, symbols that differ from ids, and odd ids', async () =>
    asProvider(async ({ metadata, metrics }) => {
      const { data } = (await metadata('assets')).json
      const apple = data.find(({ id }: { id: string }) => id === 'AAPLX')
      expect(apple).toMatchObject({ symbol: 'AAPL.XS', asset_type: 'TOKEN', semantic_tags: ['tokenizedStock'] })
      expect(apple.blockchains.map(({ blockchain }: { blockchain: string }) => blockchain)).toEqual([
        'ETH',
        'SOL',
        'ARB',
      ])
      expect(apple.blockchains[0]).toEqual({
        blockchain: 'ETH',
        address: expect.stringMatching(/^0x[0-9a-f]{40}$/),
        decimals: 18,
        on_chain_support: true,
      })
      const ids = data.map(({ id }: { id: string }) => id)
      expect(ids).toEqual(expect.arrayContaining(['$CWIF', '00', '1', 'BTC']))
      const { json: plain } = await metrics('assets')
      expect(plain.map(({ id }: { id: string }) => id)).toEqual(ids)
      expect(Object.keys(plain[0])).toEqual(['id', 'symbol', 'name'])
    }))

  test('are refused for a path, an asset or a key that the provider does not know', async () =>
    asProvider(async ({ metadata, metricsUrl }) => {
      const places = [
        'metric?path=/market/usexchange_premium_pit',
        'metric',
        'metric?path=/supply/current_pit&a=NO',
        'no',
      ]
      expect(await Promise.all(places.map(async (place) => (await metadata(place)).status))).toEqual([
        404, 400, 400, 404,
      ])
      expect((await ask(`${metricsUrl}/v1/metadata/metrics`)).status).toBe(401)
    }))
})

describe('points under real names', () => {
  test('a placeholder exchange is refused with 400, a real one is answered', async () =>
    asProvider(async ({ metrics }) => {
      const path = 'options/iv_call_delta_25_pit'
      const statuses = async (...names: string[]) =>
        await Promise.all(names.map(async (e) => (await metrics(path, { a: 'BTC', ...week, e })).status))
      expect(await statuses('deribit', 'okx', 'options_exchange_1', 'aggregated')).toEqual([200, 200, 400, 400])
      expect((await metrics('market/usexchange_premium_pit', { a: 'BTC', ...week })).status).toBe(404)
      expect((await metrics('market/coinbase_premium_pit', { a: 'BTC', ...week })).json.length).toBeGreaterThan(5)
    }))

  test('a request without an exchange takes the default of the metadata, and is refused where there is none', async () =>
    asProvider(async ({ metrics }) => {
      const path = 'options/iv_call_delta_25_pit'
      const plain = await metrics(path, { a: 'BTC', ...week })
      expect(plain.json).toEqual((await metrics(path, { a: 'BTC', ...week, e: 'deribit' })).json)
      expect(plain.json).not.toEqual((await metrics(path, { a: 'BTC', ...week, e: 'okx' })).json)
      expect((await metrics('options/iv_call_delta_50_pit', { a: 'BTC', ...week })).status).toBe(400)
    }))

  test('a path of a higher tier than the plan is refused with 403, its metadata are not', async () => {
    const statusAt = async (tier: number): Promise<number[]> => {
      const statuses: number[] = []
      await asProvider(
        async ({ metrics, metadata }) => {
          statuses.push((await metrics('signals/btc_sharpe_signal_pit', { a: 'BTC', ...week })).status)
          statuses.push((await metrics('supply/current_pit', { a: 'BTC', ...week })).status)
          expect((await metadata('metric?path=/signals/btc_sharpe_signal_pit')).json.tier).toBe(3)
        },
        { tier },
      )
      return statuses
    }
    expect([await statusAt(2), await statusAt(3)]).toEqual([
      [403, 200],
      [200, 200],
    ])
  })

  test('every value of the metadata is answered for an asset that the path takes', async () =>
    asProvider(
      async ({ sandbox, metadata }) => {
        const { json: listed } = await metadata('metrics')
        const headers = { 'x-api-key': 'metrics-key' }
        /** Asked without a port: a body that nobody reads is never made. */
        const statusOf = async (path: string, query: Record<string, string>): Promise<number> => {
          const address = `http://localhost/v1/metrics${path}?${new URLSearchParams(query).toString()}`
          return (await sandbox.handle(new Request(address, { headers }))).status
        }
        const failed: string[] = []
        for (const path of listed.filter((one: string) => one.endsWith('_pit'))) {
          const described = new Request(`http://localhost/v1/metadata/metric?path=${path}&a=BTC`, { headers })
          const answer = await sandbox.handle(described)
          if (answer.status === 400) continue
          const { parameters, parameters_defaults } = (await answer.json()) as Described
          const { e: exchanges = [], ...lists } = parameters
          const first = exchanges[0] === undefined || parameters_defaults.e ? {} : { e: exchanges[0] }
          for (const [key, values] of Object.entries({ ...lists, e: exchanges })) {
            for (const value of values) {
              const status = await statusOf(path, { a: 'BTC', ...first, [key]: value })
              if (status !== 200) failed.push(`${path} ${key}=${value}: ${status}`)
            }
          }
        }
        expect(failed).toEqual([])
      },
      { tier: 3 },
    ))

  test('a path without _pit has the same points without computed_at', async () =>
    asProvider(async ({ metrics }) => {
      const dated = (await metrics('supply/current_pit', { a: 'BTC', ...week })).json
      const plain = (await metrics('supply/current', { a: 'BTC', ...week })).json
      expect(dated[0].computed_at).toBeGreaterThan(dated[0].t)
      expect(plain).toEqual(dated.map(({ t, v }: { t: number; v: unknown }) => ({ t, v })))
    }))
})

test('tokenized stocks lead to products by contract on each chain, by symbol alone, by a symbol of two, or by contract alone', async () =>
  asProvider(async ({ metadata, registry }) => {
    const { data } = (await metadata('assets')).json as { data: ListedAsset[] }
    const paths: Record<string, readonly [byContract: string[], bySymbol: string[]]> = {}
    for (const { id, symbol, blockchains } of data.filter(({ symbol }) => symbol.endsWith('.XS'))) {
      const variant = symbol.replace('.XS', 'x')
      const named = (await registry(`/products?symbol=${variant}`)).json.data as { symbol: string }[]
      const reached: string[] = []
      for (const { blockchain, address } of blockchains) {
        const held = (await registry(`/deployments?address=${address}`)).json.data as { product_id: string }[]
        for (const { product_id } of held) {
          const product = (await registry(`/products/${product_id}`)).json.data as { symbol: string }
          reached.push(`${blockchain} ${product.symbol}`)
        }
      }
      paths[id] = [reached, named.map((product) => product.symbol)]
    }
    expect(paths).toEqual({
      AAPLX: [['ETH AAPLx', 'SOL AAPLx', 'ARB AAPLx'], ['AAPLx']],
      TSLAX: [[], ['TSLAx']],
      NVDAX: [[], ['NVDAx', 'NVDAx']],
      SPYX: [['ETH wSPYx', 'SOL wSPYx', 'ARB wSPYx'], []],
      GOOGLX: [['ETH GOOGLx'], ['GOOGLx']],
      MSTRX: [[], ['MSTRx']],
    })
  }))

test('no answer of a provider with real names shows that it is a sandbox', async () =>
  asProvider(async ({ metrics, metadata, registry, metricsUrl }) => {
    const answers = [
      await metadata('metrics'),
      await metadata('metric?path=/supply/current_pit'),
      await metadata('assets'),
      await metadata('no'),
      await metrics('supply/current_pit', { a: 'BTC', ...week }),
      await metrics('signals/btc_sharpe_signal_pit', { a: 'BTC' }),
      await metrics('endpoints'),
      await registry('/products'),
      await registry('/no'),
      await ask(`${metricsUrl}/`),
      await ask(`${metricsUrl}/v1/metadata/metrics`),
    ]
    const marks = answers.map(({ headers, text }) => `${JSON.stringify(headers)} ${text}`)
    expect(marks.filter((text) => /sandbox|pitlake|synthetic/i.test(text))).toEqual([])
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 404, 200, 403, 404, 200, 404, 404, 401])
  }))

test('a provider of a test serves real names, counts requests and notices placeholders', async () =>
  withRealProvider({}, async ({ url, env, requests, placeholdersSent }) => {
    const key = { 'x-api-key': realKeys.metrics }
    expect((await ask(`${url}/v1/metadata/metrics`, key)).status).toBe(200)
    expect([env['PITLAKE_METRICS_URL'], placeholdersSent()]).toEqual([url, []])
    await ask(`${url}/v1/metrics/options/iv_call_delta_25_pit?a=BTC&e=options_exchange_1`, key)
    await ask(`${url}/v1/metrics/market/usexchange_premium_pit?a=BTC`, key)
    expect(placeholdersSent()).toHaveLength(2)
    expect(requests().map(({ api, status }) => [api, status])).toEqual([
      ['metadata', 200],
      ['metrics', 400],
      ['metrics', 404],
    ])
    expect(worldAssets.map(({ id }) => id)).not.toContain('AAPLX')
  }))
