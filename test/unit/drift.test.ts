import { expect, test } from 'vitest'
import type { ProviderNames } from '../../src/catalog/catalogue.ts'
import { compareListing } from '../../src/catalog/drift.ts'
import { noNames, withNames } from '../../src/catalog/names.ts'
import { readListing } from '../../src/catalog/listing.ts'
import { findDrift } from '../../src/sources/metrics/drift.ts'
import type { DatedMetadata } from '../../src/sources/metrics/metadata-readings.ts'
import type { Sandbox } from '../../src/sandbox/sandbox.ts'
import { resolveSettings } from '../../src/catalog/settings.ts'
import { mounts } from '../helpers/mounts.ts'
import { catalogue, withSandbox } from '../helpers/sandbox-client.ts'
import { partOf } from '../helpers/part-of.ts'

const named = (names: Partial<ProviderNames>) => withNames(catalogue, { ...noNames, ...names })
const all = [...catalogue.endpoints.values()]
const supply = catalogue.endpoints.get('supply/current_pit')!
const listingOf = (rows: readonly object[]) => readListing('listing', JSON.stringify(rows))
const rowOf = ({ ask, intervals, currencies, exchanges, networks }: (typeof all)[number]) => ({
  path: ask,
  intervals,
  currencies,
  exchanges,
  networks,
})

test('a listing of the same endpoints is no drift', () => {
  expect(compareListing(catalogue, listingOf(all.map(rowOf)), false)).toMatchObject({
    new: [],
    gone: [],
    changed: [],
    unmapped: [],
    catalogued: all.length,
  })
})

test('new, gone and changed endpoints are listed with the fields that one side lacks', () => {
  const rows = all
    .filter(({ ask }) => ask !== 'blockchain/block_height_pit')
    .map((endpoint) => {
      const row = rowOf(endpoint)
      return endpoint === supply
        ? { ...row, intervals: ['24h', '1h', '10m'], currencies: ['native', 'eur'], until: false }
        : row
    })
  const drift = compareListing(catalogue, listingOf([...rows, { path: 'new/one_pit' }, { path: 'new/live' }]), false)
  expect(drift.new).toEqual(['new/one_pit'])
  expect(drift.gone).toEqual(['blockchain/block_height_pit'])
  expect(drift.changed).toEqual([
    {
      path: 'supply/current_pit',
      changes: [
        {
          parameter: 'intervals',
          added: ['24h', '1h', '10m'].filter((i) => !supply.intervals.includes(i as '24h')),
          removed: supply.intervals.filter((i) => !['24h', '1h', '10m'].includes(i)),
        },
        { parameter: 'currencies', added: ['eur'], removed: ['usd'] },
        { parameter: 'takes', added: [], removed: ['until'] },
      ].filter(({ added, removed }) => added.length + removed.length > 0),
    },
  ])
  const every = compareListing(catalogue, listingOf([{ path: 'new/live' }]), true)
  expect(every.new).toEqual(['new/live'])
})

test('placeholders are compared under their real names, and left open where there is none', () => {
  const nameless = all.find(({ placeholders }) => placeholders.length > 0)!
  const paths = (open: boolean) => all.filter((one) => one.placeholders.length > 0 === open).map(({ path }) => path)
  expect(compareListing(catalogue, [], false)).toMatchObject({ unmapped: paths(true), gone: paths(false) })
  const mapped = compareListing(
    named({ paths: { [nameless.path]: 'real/name_pit' } }),
    [{ path: 'real/name_pit' }],
    false,
  )
  expect(mapped.new).toEqual([])
  expect(mapped.unmapped).not.toContain(nameless.path)
  const open = all.find(({ exchanges }) => exchanges.some((name) => catalogue.placeholderExchanges.has(name)))!
  const row = { ...rowOf(open), exchanges: ['some-real-exchange'] }
  const added = compareListing(catalogue, listingOf([row]), false).changed.flatMap(({ changes }) =>
    changes.flatMap((change) => change.added),
  )
  expect(added).toEqual([])
  const isOpen = (one: string): boolean => catalogue.placeholderExchanges.has(one)
  const half = all.find((one) => one.exchanges.some(isOpen) && !one.exchanges.every(isOpen))!
  const real = half.exchanges.filter((one) => !isOpen(one))
  const bare = compareListing(catalogue, listingOf([{ ...rowOf(half), exchanges: ['x'] }]), false)
  expect(bare.changed.flatMap(({ changes }) => changes.flatMap((c) => c.removed))).toEqual(real)
  const exchanges = Object.fromEntries(open.exchanges.map((one) => [one, `real-${one}`]))
  const renamed = { ...rowOf(open), exchanges: Object.values(exchanges) }
  expect(compareListing(named({ exchanges }), listingOf([renamed]), false).changed).toEqual([])
})

test('a listed path that alone fits a placeholder is no new one, and of two that fit both are new', () => {
  const path = 'market/usexchange_premium_pit'
  const listing = (words: readonly string[]) => words.map((word) => ({ path: `market/${word}_premium_pit` }))
  const one = compareListing(catalogue, listing(['acme']), false)
  expect([one.new, one.unmapped.includes(path)]).toEqual([[], false])
  const two = compareListing(catalogue, listing(['acme', 'other']), false)
  expect([two.new.length, two.unmapped.includes(path)]).toEqual([2, true])
})

const deps = {
  now: Date.now,
  wait: async () => undefined,
  random: Math.random,
  signal: new AbortController().signal,
  proxy: {},
  program: 'pitlake test',
  temporary: process.env['TMPDIR'] ?? '/tmp',
}

const inputOf = (url: string, key = 'metrics-key') => {
  const settings = resolveSettings({ flags: {}, env: {}, cwd: '/' })
  const asked = { ...settings, metrics: { ...settings.metrics, url, key } }
  return {
    settings: asked,
    catalogue,
    file: null,
    path: 'endpoints',
    all: false,
    metadata: new Map<string, DatedMetadata>(),
  }
}

test.each(mounts)('the listing is requested from the provider ($name)', async (mount) =>
  withSandbox(mount, {}, async ({ metricsUrl }) => {
    // The sandbox lists the catalogue's placeholders: they are its names.
    const none = { new: [], gone: [], changed: [], unmapped: [] }
    expect(await findDrift(inputOf(metricsUrl), deps)).toMatchObject(none)
    await expect(findDrift({ ...inputOf(metricsUrl), path: 'no/such' }, deps)).rejects.toMatchObject({
      kind: 'incomplete',
      message: expect.stringContaining('--file'),
    })
    await expect(findDrift(inputOf(metricsUrl, 'wrong'), deps)).rejects.toMatchObject({ kind: 'unauthorised' })
  }),
)

test('changes of a provider are found in its listing over HTTP', async () => {
  const port = mounts.find(({ name }) => name === 'port')!
  const rows = [...all.slice(2).map(rowOf), { path: 'fresh/metric_pit' }]
  const changed = partOf<Sandbox>({ handle: async () => Response.json({ data: rows }) })
  const mounted = await port.start(changed)
  try {
    const drift = await findDrift(inputOf(mounted.metricsUrl), deps)
    expect(drift.new).toEqual(['fresh/metric_pit'])
    expect(drift.gone).toEqual(all.slice(0, 2).map(({ path }) => path))
  } finally {
    await mounted.stop()
  }
})

const catalogued = [...catalogue.endpoints.keys()]

test.each([
  ['at its metadata, as paths', '/v1/metadata/metrics', [...catalogued.map((path) => `/${path}`), '/fresh/metric_pit']],
  [
    'below the prefix, if its metadata have none',
    '/v1/metrics/endpoints',
    [...all.map(rowOf), { path: 'fresh/metric_pit' }],
  ],
])('drift without --path requests the listing %s', async (_, place, listing) => {
  const port = mounts.find(({ name }) => name === 'port')!
  const handle = async (request: Request): Promise<Response> =>
    new URL(request.url).pathname === place ? Response.json(listing) : Response.json({}, { status: 404 })
  const mounted = await port.start(partOf<Sandbox>({ handle }))
  try {
    const drift = await findDrift({ ...inputOf(mounted.metricsUrl), path: null }, deps)
    expect([drift.new, drift.gone]).toEqual([['fresh/metric_pit'], []])
  } finally {
    await mounted.stop()
  }
})

test('if the listing has paths only, parameters are compared with stored metadata', async () => {
  const { asset, interval, currency, exchange } = catalogue.wire.queryKeys
  const text = JSON.stringify([...catalogued, 'fresh/metric_pit'])
  const said = { parameters: {}, min: null, at: 0 }
  const metadata = new Map([
    [
      'supply/current_pit',
      { ...said, parameters: { [asset]: ['BTC'], [interval]: ['24h', '5m'], [currency]: ['native', 'usd', 'eur'] } },
    ],
    // Nothing that the catalogue knows, and a path that is not listed.
    ['blockchain/block_height_pit', { ...said, parameters: { [asset]: ['BTC'] } }],
    ['lost/metric_pit', { ...said, parameters: { [exchange]: ['deribit'] } }],
  ])
  const drift = await findDrift(
    { ...inputOf('http://127.0.0.1:1'), file: { name: 'saved.json', text }, metadata },
    deps,
  )
  expect(drift.described).toBe(1)
  expect(drift.changed).toEqual([
    {
      path: 'supply/current_pit',
      changes: [
        { parameter: 'intervals', added: [], removed: supply.intervals.filter((one) => one !== '24h') },
        { parameter: 'currencies', added: ['eur'], removed: [] },
      ],
    },
  ])
  const own = JSON.stringify([
    { path: 'supply/current_pit', currencies: supply.currencies, intervals: supply.intervals },
  ])
  const newer = await findDrift({ ...inputOf(''), file: { name: 'saved.json', text: own }, metadata }, deps)
  expect([newer.described, newer.changed]).toEqual([0, []])
})

test('drift without an address or a key names the setting that is missing', async () => {
  const bare = { ...inputOf('http://127.0.0.1:1'), settings: resolveSettings({ flags: {}, env: {}, cwd: '/' }) }
  await expect(findDrift(bare, deps)).rejects.toMatchObject({
    kind: 'usage',
    message: expect.stringContaining('--file'),
  })
  const file = { name: 'saved.json', text: '["supply/current_pit", "x/y_pit"]' }
  expect((await findDrift({ ...bare, file }, deps)).new).toEqual(['x/y_pit'])
})
