import fc from 'fast-check'
import { expect, test } from 'vitest'
import { loadCatalogue } from '../../src/catalog/load.ts'
import {
  expand,
  parseSeriesId,
  readableSeries,
  type Selection,
  type Series,
  seriesId,
} from '../../src/catalog/series.ts'
import { LakeError } from '../../src/base/errors.ts'
import { intervals, offeredIntervals } from '../../src/base/time.ts'
import { type Meant, meant } from '../helpers/series-twin.ts'

const catalogue = loadCatalogue()

const awkward = fc.oneof(
  fc.string({ minLength: 1, unit: 'grapheme' }),
  fc.string({
    minLength: 1,
    unit: fc.constantFrom('$', '.', '%', '/', '=', '&', '|', ' ', '0', '7', 'c', '\n', 'ü', '😀'),
  }),
  fc.stringMatching(/^[0-9]{1,4}$/),
  fc.constantFrom('null', 'NULL', '%7c', '%25', '__proto__'),
)
const dimension = fc.option(awkward)
const identity: fc.Arbitrary<Omit<Series, 'id'>> = fc.record({
  metric: awkward,
  asset: awkward,
  interval: fc.option(fc.constantFrom(...intervals)),
  currency: dimension,
  exchange: dimension,
  network: dimension,
  params: fc
    .uniqueArray(fc.tuple(awkward, fc.oneof(awkward, fc.constant(''))), { selector: ([key]) => key })
    .map((pairs) => Object.fromEntries(pairs)),
})

test('every id names its series again, whatever characters the parts hold', () => {
  fc.assert(
    fc.property(identity, (series) => {
      const id = seriesId(series)
      expect(parseSeriesId(id)).toEqual({ id, ...series })
    }),
    { numRuns: 500 },
  )
})

test.each(['', 'a', 'a|b', 'a|b|2h||||', 'a|b|24h|||||', '|b|24h||||', 'a|%7C|24h||||', 'a|b|24h||||b=1&a=1'])(
  'a text that is no series id gives none: %j',
  (text) => expect(parseSeriesId(text)).toBeUndefined(),
)

const ids = (...selections: Selection[]) => expand(catalogue, selections).map((wanted) => wanted.series.id)

const named = (list: readonly string[]) => fc.option(fc.subarray(['*', ...list], { minLength: 1 }), { nil: undefined })
const globs = [
  '*',
  'supply/*',
  '*_pit',
  'indicators/*sol*',
  'addresses/active_count_pit',
  '*/*count*pit',
  'derivatives/*',
]

test('any selection means what plain loops over the catalogue mean', () => {
  const every = (list: 'currencies' | 'exchanges' | 'networks') =>
    [...new Set([...catalogue.endpoints.values()].flatMap((endpoint): readonly string[] => endpoint[list]))].slice(0, 4)
  let some = 0
  fc.assert(
    fc.property(
      fc.record({
        assets: fc.subarray(['BTC', 'ETH', 'x|y'], { minLength: 1 }),
        paths: fc.subarray(globs, { minLength: 1 }),
        intervals: named(offeredIntervals),
        currencies: named(every('currencies')),
        exchanges: named(every('exchanges')),
        networks: named(every('networks')),
      }),
      (drawn) => {
        // Cast: the fields are those that were drawn, each of its type; absent ones must be absent.
        const selection = Object.fromEntries(
          Object.entries(drawn).filter(([, value]) => value !== undefined),
        ) as unknown as Selection
        const key = (one: Omit<Meant, 'endpoint'>, metric: string): string =>
          JSON.stringify([metric, one.asset, one.interval, one.currency, one.exchange, one.network])
        const owed = meant(selection).map(({ endpoint, ...one }) => key(one, endpoint.path))
        if (owed.length === 0) {
          expect(() => ids(selection)).toThrow('an endpoint that takes what is selected')
          return
        }
        some++
        expect(
          expand(catalogue, [selection])
            .map(({ series }) => key(series, series.metric))
            .toSorted(),
        ).toEqual(owed.toSorted())
      },
    ),
    { numRuns: 150 },
  )
  expect(some).toBeGreaterThan(30)
})

test('the order is the catalogue’s, then assets as given, and does not depend on the order of the globs', () => {
  const order = [...catalogue.endpoints.keys()]
  const both = expand(catalogue, [{ assets: ['ETH', 'BTC'], paths: ['supply/*', 'indicators/*'] }])
  const places = both.map((wanted) => order.indexOf(wanted.series.metric))
  expect(places).toEqual(places.toSorted((a, b) => a - b))
  expect(both.slice(0, 2).map((wanted) => wanted.series.asset)).toEqual(['ETH', 'BTC'])
  expect(ids({ assets: ['ETH', 'BTC'], paths: ['indicators/*', 'supply/*'] })).toEqual(both.map((w) => w.series.id))
})

test('a series that is selected twice comes once, with the hull of its ranges', () => {
  const path = { paths: ['indicators/asol_pit'] }
  const twice = expand(catalogue, [
    { assets: ['BTC', 'BTC'], ...path, since: 1000, until: 2000 },
    { assets: ['BTC'], paths: ['indicators/a*'], since: 1500, until: 3000 },
  ])
  const asol = twice.filter((wanted) => wanted.series.metric === 'indicators/asol_pit')
  expect(asol).toHaveLength(1)
  expect(asol[0]).toMatchObject({ since: 1000, until: 3000 })
  const [open] = expand(catalogue, [
    { assets: ['BTC'], ...path, since: 1000, until: 2000 },
    { assets: ['BTC'], ...path },
  ])
  expect(open).toMatchObject({ since: null, until: null })
  const [before] = expand(catalogue, [
    { assets: ['BTC'], ...path, until: 2000 },
    { assets: ['BTC'], ...path, since: 3000, until: 4000 },
  ])
  expect(before).toMatchObject({ since: null, until: 4000 })
})

test('a series id is shown by its parts, and any other text as a metric', () => {
  const parts = { metric: 'a', asset: 'b', interval: '24h', currency: null, exchange: null, network: 'eth' }
  expect(readableSeries('a|b|24h|||eth|')).toEqual(parts)
  const none = { metric: 'a|b', asset: '', interval: null, currency: null, exchange: null, network: null }
  expect(readableSeries('a|b')).toEqual(none)
  const named = (params: Series['params']) => seriesId({ ...parts, interval: null, params })
  expect(named({ b: '2', a: '1' })).toBe(named({ a: '1', b: '2' }))
})

test.each<[Partial<Selection>, string]>([
  [{ intervals: ['25h'] }, 'did you mean `24h`?'],
  [{ currencies: ['usdd'] }, 'did you mean `usd`?'],
  [{ exchanges: ['agregated'] }, 'did you mean `aggregated`?'],
  [{ networks: ['bsse'] }, 'did you mean `base`?'],
  [{ paths: ['indicators/asol_pitt'] }, 'did you mean `indicators/asol_pit`?'],
  [{ paths: ['nothing/*'] }, 'no match'],
  [{ paths: ['*', 'nothing/*'] }, 'nothing/*'],
  [{ paths: ['indicators/asol_pit'], intervals: ['1month'] }, 'none for intervals 1month'],
  [{ assets: [''] }, 'asset ids'],
  [{ assets: ['\ud800'] }, 'asset ids'],
  [{ assets: [] }, 'at least one value'],
  [{ currencies: [] }, 'at least one value'],
  [{ since: 200, until: 200 }, 'an instant before until'],
])('refused in one line: %j', (part, text) => {
  const attempt = () => ids({ assets: ['BTC'], ...part })
  expect(attempt).toThrow(LakeError)
  expect(attempt).toThrow(text)
  expect(attempt).toThrow(/^[^\n]+$/)
})
