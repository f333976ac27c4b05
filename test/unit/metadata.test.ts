import { noNames, withNames } from '../../src/catalog/names.ts'
import type { Endpoint } from '../../src/catalog/catalogue.ts'
import { expand, type Series } from '../../src/catalog/series.ts'
import { readMetadata, saidOf } from '../../src/sources/metrics/metadata-readings.ts'
import { metadataUrl } from '../../src/sources/metrics/api.ts'
import { askMetadata } from '../../src/sources/metrics/metadata.ts'
import { applySettings, resolveSettings } from '../../src/catalog/settings.ts'
import { inFolder } from '../helpers/folders.ts'
import { catalogue } from '../helpers/sandbox-client.ts'
import { writeFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import type { AnsweredRequest, AskOne } from '../../src/sources/http/request-rows.ts'
import { partOf } from '../helpers/part-of.ts'

const keys = {
  template: '/v1/metadata/metric?path=/{path}',
  parameters: 'parameters',
  timerange: 'timerange',
  min: 'min',
  stats: '/v1/metadata/metric/stats?path=/{path}&a={asset}',
}
const read = (value: unknown) => readMetadata(JSON.stringify(value), keys)

test('metadata are lists by query key and a beginning; what changes each day is left out', () => {
  const told = {
    path: '/supply/current_pit',
    parameters: { i: ['24h', '1h'], a: ['ETH', 'BTC', 'BTC'], c: 'usd', f: ['json'] },
    timerange: { min: 1_230_940_800, max: 1_700_000_000 },
    modified: 1_700_000_000,
    next_parameter: 'a',
    is_pit: true,
  }
  const read1 = read(told)
  expect(read1).toEqual({
    parameters: { a: ['BTC', 'ETH'], c: ['usd'], f: ['json'], i: ['1h', '24h'] },
    min: 1_230_940_800,
  })
  expect(JSON.stringify(read({ ...told, modified: 1, timerange: { min: 1_230_940_800, max: 3 } }))).toBe(
    JSON.stringify(read1),
  )
})

test.each([
  [{ min: '2015-07-30' }, 1_438_214_400],
  [{ min: '2015-07-30T00:00:00Z' }, 1_438_214_400],
  [{ min: 1_438_214_400_000 }, 1_438_214_400],
  [{ min: null }, null],
  [{ min: 'soon' }, null],
  [{ min: 1_438_214_400_000_000 }, null],
  [{ min: '9999-12-31' }, null],
  [{ min: 1e300 }, null],
  [{ min: 95_000_000_000 }, 95_000_000_000],
  [{}, null],
  [[], null],
  ['from 2015', null],
  [null, null],
])('the beginning of %j is %j', (timerange, min) => {
  expect(read({ parameters: { a: ['BTC'] }, timerange })?.min).toBe(min)
})

test('a parameter of another shape says nothing, and takes nothing from the others', () => {
  expect(read({ parameters: { a: ['BTC', 7], i: { all: true }, c: null, e: [['x']], n: true } })?.parameters).toEqual({
    a: ['7', 'BTC'],
    c: [],
    e: [],
    i: [],
    n: ['true'],
  })
})

test.each([
  '',
  'null',
  '[]',
  '[{"t":1,"v":2}]',
  '{}',
  '{"parameters":[]}',
  '{"parameters":null}',
  '<html>',
  '{"parameters":{',
])('a body gives no metadata: %s', (text) => expect(readMetadata(text, keys)).toBeNull())

test('the address holds the path with its slashes, and every other sign encoded', () => {
  expect(metadataUrl('https://x.test/base/', keys.template, 'a b/c&d$_pit')).toBe(
    'https://x.test/base/v1/metadata/metric?path=/a%20b/c%26d%24_pit',
  )
  expect(metadataUrl('https://x.test', '/v2/about/{path}/all', 'a/b')).toBe('https://x.test/v2/about/a/b/all')
})

const endpoint = catalogue.endpoints.get('addresses/active_count_pit') as Endpoint
const [wanted] = expand(catalogue, [{ assets: ['BTC'], paths: [endpoint.path] }])
const series = wanted?.series as Series
const said = (parameters: Record<string, string[]>, own: Partial<Series> = {}, of = endpoint) =>
  saidOf(
    { parameters, min: null, at: 0 },
    catalogue.wire,
    { series: { ...series, ...own }, endpoint: of },
    { timestamp: 'interval_start' },
  ).listed

test('a series is left out by any list that does not hold its value', () => {
  expect(said({ a: ['BTC', 'ETH'], i: ['24h'], network: ['eth'] })).toBe(true)
  expect(said({ a: ['ETH'] })).toBe(false)
  expect(said({ a: ['btc'] })).toBe(false)
  expect(said({ i: ['1h', '10m'] })).toBe(false)
  expect(said({ network: ['arb'] })).toBe(false)
  expect(said({ network: ['arb'] }, { network: 'arb' })).toBe(true)
})

test('lists that are empty, absent, foreign or spelt differently exclude no series', () => {
  expect(said({})).toBe(true)
  expect(said({ a: [], i: [], network: [] })).toBe(true)
  expect(said({ c: ['eur'], e: ['nobody'] })).toBe(true)
  expect(said({ i: ['1d', 'hourly'] })).toBe(true)
  expect(said({ i: ['1d', '1h'] })).toBe(false)
  expect(said({ i: ['1d', '24h'] })).toBe(true)
  expect(said({ constructor: ['x'] })).toBe(true)
})

test('a mapped exchange is listed under its real name', () => {
  const named = withNames(catalogue, { ...noNames, exchanges: { exchange_1: 'REAL' } })
  const futures = [...named.endpoints.values()].find(({ exchanges }) => exchanges.includes('aggregated')) as Endpoint
  expect(said({ e: ['REAL', 'aggregated'] }, { exchange: 'REAL' }, futures)).toBe(true)
  expect(said({ e: ['exchange_1', 'aggregated'] }, { exchange: 'REAL' }, futures)).toBe(false)
})

test('address and keys are a setting; `metadata: false` asks for none', () => {
  const settings = resolveSettings({ flags: {}, env: {}, cwd: '/' })
  const wireWith = (metadata: typeof settings.metrics.metadata) =>
    applySettings(catalogue, { ...settings, metrics: { ...settings.metrics, metadata } }).wire.metadata
  expect(wireWith({ template: '/about/{path}' })).toEqual({ ...catalogue.wire.metadata, template: '/about/{path}' })
  expect(wireWith({ parameters: 'takes', timerange: 'span', min: 'from' })).toEqual({
    ...catalogue.wire.metadata,
    parameters: 'takes',
    timerange: 'span',
    min: 'from',
  })
  expect(wireWith(false)).toBeNull()
  expect(wireWith({})).toEqual(catalogue.wire.metadata)
})

const answered = { at: 1, requestMs: 1, date: null, sandbox: null, requestId: null, words: '', code: null } as const

/** Asks for metadata of a provider that has them of these paths and says otherwise of the others. */
async function asked(
  paths: { readonly plain: readonly string[]; readonly guarded: readonly string[] },
  known: readonly string[],
  otherwise: object,
  sandbox = false,
): Promise<readonly [readonly string[], readonly (readonly [string, number | null | undefined])[]]> {
  const sent: string[] = []
  const came: (readonly [string, number | null | undefined])[] = []
  await inFolder(async (root) => {
    const ask: AskOne = async ({ url, file }) => {
      const path = new URL(url).searchParams.get('path')?.slice(1) ?? 'the listing'
      sent.push(path)
      if (!known.includes(path)) return partOf<AnsweredRequest>({ outcome: { ...answered, ...otherwise } })
      writeFileSync(file, JSON.stringify({ parameters: { a: ['BTC'] }, timerange: { min: 1_438_214_400 } }))
      return partOf<AnsweredRequest>({ outcome: { ...answered, kind: 'body', status: 200, file, bytes: 1 } })
    }
    const wire = { ...catalogue.wire, metadata: keys }
    const asking = { ask, base: 'http://x', run: 'r', wire, concurrency: 2, file: (name: string) => `${root}/${name}` }
    const due = {
      plain: paths.plain,
      guarded: paths.guarded.map((path) => ({ path, ask: path, placeholders: [path] })),
    }
    const heard = await askMetadata(asking, due, { isSandbox: () => sandbox, takesPlaceholders: () => sandbox })
    for (const { path, read: found } of heard.answers) came.push([path, found === null ? null : found.min])
  })
  return [sent, came]
}

const gone = { kind: 'gone', status: 404 }

test('metadata are requested for all paths once one has them, and for none if the first few have none', async () => {
  const plain = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h']
  const guarded = ['x', 'y']
  const both = { plain, guarded }
  expect(await asked(both, ['a', 'c'], gone)).toEqual([
    plain,
    plain.map((path) => [path, ['a', 'c'].includes(path) ? 1_438_214_400 : null]),
  ])
  expect((await asked(both, ['b'], gone))[0]).toEqual(plain)
  const [few] = await asked(both, ['h'], gone)
  expect([few, few.length > 1 && few.length < 5]).toEqual([plain.slice(0, few.length), true])
  // Who cannot be reached, or wants to be left alone, is not asked a second time.
  expect((await asked(both, [], { kind: 'limited', status: 429 }))[0]).toEqual(['a'])
})

test('metadata of placeholder names are requested from a sandbox only', async () => {
  const both = { plain: ['a'], guarded: ['x', 'y'] }
  expect((await asked(both, ['a', 'x'], gone, true))[0]).toEqual(['a', 'x', 'y'])
  expect((await asked(both, ['a', 'x'], gone, false))[0]).toEqual(['a'])
  expect((await asked({ plain: [], guarded: ['x'] }, ['x'], gone, true))[0]).toEqual(['x'])
})
