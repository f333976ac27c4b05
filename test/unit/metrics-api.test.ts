import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { Endpoint } from '../../src/catalog/catalogue.ts'
import type { Series } from '../../src/catalog/series.ts'
import { assetsUrl, knownParameters, metricsUrl, shownUrl } from '../../src/sources/metrics/api.ts'
import { catalogue } from '../helpers/sandbox-client.ts'

const { wire } = catalogue
const supply = catalogue.endpoints.get('supply/current_pit') as Endpoint
const full: Endpoint = { ...supply, path: 'supply/current_usd_pit', exchanges: ['exchange_1'], networks: ['eth'] }
const none = { intervals: [], currencies: [], exchanges: [], networks: [] }
const bare: Endpoint = { ...full, ...none, since: false, until: false, format: false }
const dimensions = { interval: '24h', currency: 'usd', exchange: 'exchange_1', network: 'eth' } as const
const series: Series = { id: 'x', metric: full.path, asset: 'BTC', ...dimensions, params: {} }
const window = { since: 1_514_764_800, until: 1_709_251_200 }
const base = 'https://api.example'

test('every parameter that the endpoint takes, under the configured key', () => {
  expect(metricsUrl(base, wire, { endpoint: full, series, window })).toBe(
    'https://api.example/v1/metrics/supply/current_pit?a=BTC&s=1514764800&u=1709251200&i=24h&c=usd&e=exchange_1&network=eth&f=json',
  )
  const other = { ...wire, queryKeys: { ...wire.queryKeys, since: 'from', asset: 'id' } }
  expect(metricsUrl(base, other, { endpoint: full, series, window })).toContain('?id=BTC&from=1514764800&u=')
})

test('a request has no parameter that the endpoint does not take, even if the series has one', () => {
  expect(metricsUrl(base, wire, { endpoint: bare, series, window })).toBe(
    'https://api.example/v1/metrics/supply/current_pit?a=BTC',
  )
})

test('a null dimension and a null window are left out', () => {
  const plain: Series = { ...series, interval: null, currency: null, exchange: null, network: null }
  expect(metricsUrl(base, wire, { endpoint: full, series: plain, window: null })).toMatch(/\?a=BTC&f=json$/)
})

test('names of any signs and further parameters', () => {
  const url = metricsUrl(`${base}/gate/`, wire, {
    endpoint: { ...full, ask: 'protocols/real name_pit' },
    series: { ...series, exchange: 'real&id', params: { quote: 'x y' } },
    window: null,
  })
  expect(url).toMatch(/^https:\/\/api\.example\/gate\/v1\/metrics\/protocols\/real%20name_pit\?/)
  expect(url).toContain('&e=real%26id&')
  expect(url.endsWith('&quote=x%20y')).toBe(true)
})

test.each(['1', '00', '$pac', 'a.b', 'x%2Fy', 'p/q', 'k=v&z', 'sp ace', '+1', "o'k(1)!*", 'ünï', '#h?'])(
  'the asset id %j arrives as it is',
  (asset) => {
    const url = metricsUrl(base, wire, { endpoint: full, series: { ...series, asset }, window })
    expect(new URL(url).searchParams.get('a')).toBe(asset)
    expect(new URL(url).pathname).toBe('/v1/metrics/supply/current_pit')
    expect(url).toMatch(/^[\w\-.~:/?=&%]+$/)
  },
)

test('any id arrives as it is', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme', minLength: 1 }), (asset) => {
      const url = new URL(metricsUrl(base, wire, { endpoint: full, series: { ...series, asset }, window }))
      expect(url.searchParams.get('a')).toBe(asset)
      expect([...url.searchParams]).toHaveLength(8)
    }),
  )
})

test('the listing of assets, and the parameters that a refusal may name', () => {
  expect(assetsUrl('https://api.example/', wire)).toBe('https://api.example/v1/metrics/assets')
  expect(knownParameters(wire)).toContainEqual({ name: 'since', key: 's' })
  expect(knownParameters(wire)).toHaveLength(9)
})

test('a shown address has no credentials, no key parameter, no secret', () => {
  const shown = shownUrl('https://me:pw@api.example/v1?a=BTC&api_key=k123&z=s3cret', ['s3cret'])
  expect(shown).toBe('https://api.example/v1?a=BTC&api_key=[key]&z=[key]')
})
