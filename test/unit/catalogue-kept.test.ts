import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { exampleRequest } from '../../src/catalog/export.ts'
import { readListing } from '../../src/catalog/listing.ts'
import { loadCatalogue, parseCatalogue } from '../../src/catalog/load.ts'
import { parseSeriesId, seriesId } from '../../src/catalog/series.ts'

const wire = readFileSync(new URL('../../catalog/wire.yaml', import.meta.url), 'utf8')
const anywhere = 'availability:\n  - { paths: ["*"], lag: 30m, basis: assumed, reason: test }\n'
const read = (text: string) =>
  parseCatalogue([
    { name: 'wire.yaml', text: wire },
    { name: 'x.yaml', text },
  ])

test('an example request is the request that a fetch would send', () => {
  const catalogue = loadCatalogue()
  const example = (path: string): string => {
    const endpoint = catalogue.endpoints.get(path)
    if (!endpoint) throw new Error(path)
    return exampleRequest(catalogue, endpoint)
  }
  expect(example('supply/current_pit')).toBe(
    'GET {base}/v1/metrics/supply/current_pit?a=BTC&s=1704067200&u=1706745600&i=24h&c=native',
  )
  const silent = read(`${anywhere}endpoints:\n  - { path: a/x_pit, takes: [format], params: { q: eur } }\n`)
  const [endpoint] = silent.endpoints.values()
  expect(endpoint && exampleRequest(silent, endpoint)).toBe('GET {base}/v1/metrics/a/x_pit?a=BTC&q=eur')
})

test('rules of one weight take turns by their dates, in whatever order they stand', () => {
  const rule = (reason: string, until?: string): string =>
    `  - { paths: ["*"], lag: 1h, basis: assumed, reason: ${reason}${until === undefined ? '' : `, until: ${until}`} }\n`
  const lines = [rule('last'), rule('second', '2024-01-01'), rule('first', '2022-01-01')]
  for (const order of [
    [0, 1, 2],
    [2, 0, 1],
    [1, 2, 0],
  ]) {
    const rules = order.map((n) => lines[n]).join('')
    const { endpoints } = read(`availability:\n${rules}endpoints:\n  - { path: a/x_pit, intervals: [24h] }\n`)
    expect(endpoints.get('a/x_pit')?.rules['24h'].map(({ reason }) => reason)).toEqual(['first', 'second', 'last'])
  }
})

test('a link names a product, or a chain with an address', () => {
  const links = (rest: string): string => `links:\n  - { metric_asset: A, ${rest} }\n`
  expect(read(links('product_id: p1')).links).toMatchObject([{ metricAsset: 'A', productId: 'p1', chainId: null }])
  expect(read(links('chain_id: 1, address: "0xab"')).links).toMatchObject([{ productId: null, chainId: '1' }])
  for (const rest of [
    'chain_id: 1',
    'address: "0xab"',
    'from: 2024-01-01',
    'product_id: p1, chain_id: 1, address: "0xab"',
  ])
    expect(() => read(links(rest))).toThrow('either `product_id` or `chain_id` with `address`')
})

test('an overlap may be exact, and values of a field are those of its set', () => {
  const overlap = (word: string) => read(`${anywhere}endpoints:\n  - { path: a/x_pit, overlap: ${word} }\n`)
  expect(overlap('exact').endpoints.get('a/x_pit')?.overlap).toBe('exact')
  expect(() => overlap('none')).toThrow(/overlap.*exact/)
  const status = loadCatalogue().resources.get('issuers')?.fields['status']
  expect(status?.values).toEqual(expect.arrayContaining(['active', 'inactive']))
})

test('an address of the provider begins with a slash, however it ends', () => {
  const prefix = (text: string) => read(`wire: { metrics_prefix: ${text} }\n`).wire.metricsPrefix
  expect(prefix('/v2/points/')).toBe('/v2/points/')
  expect(() => prefix('v2/points/')).toThrow('metrics_prefix')
})

test('a listing that begins with a mark of its encoding is read; an id without an asset is none', () => {
  expect(readListing('x', '\uFEFF["new/one_pit"]').map(({ path }) => path)).toEqual(['new/one_pit'])
  const id = { metric: 'a/x_pit', interval: '24h', currency: null, exchange: null, network: null, params: {} } as const
  expect(parseSeriesId(seriesId({ ...id, asset: 'BTC' }))).toMatchObject({ ...id, asset: 'BTC' })
  expect(parseSeriesId(seriesId({ ...id, asset: '' }))).toBeUndefined()
})
