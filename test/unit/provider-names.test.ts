import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { Endpoint, ProviderNames } from '../../src/catalog/catalogue.ts'
import { fittingPaths, noNames, withNames } from '../../src/catalog/names.ts'
import { checkSelections, expand, type Selection } from '../../src/catalog/series.ts'
import { learnNames, refuseChangedNames } from '../../src/sources/metrics/names.ts'
import type { DatedMetadata } from '../../src/sources/metrics/metadata-readings.ts'
import { catalogue } from '../helpers/sandbox-client.ts'

const skew = 'options/25delta_skew_call_put_all_pit'
const margin = 'derivatives/futures_open_interest_cash_margin_sum_pit'
const premium = 'market/usexchange_premium_pit'

const metadataOf = (lists: Readonly<Record<string, readonly string[]>>, standard: readonly string[] = []) =>
  new Map(
    Object.entries(lists).map(([path, e]): [string, DatedMetadata] => [
      path,
      { parameters: { e }, ...(standard.length > 0 && { defaults: { e: standard } }), min: null, at: 0 },
    ]),
  )

interface Changes {
  readonly held?: ProviderNames
  readonly paths?: Readonly<Record<string, string>>
  readonly exchanges?: Readonly<Record<string, string>>
  readonly stored?: ReadonlyMap<string, ReadonlySet<string>>
  readonly metadata?: ReadonlyMap<string, DatedMetadata>
  readonly listing?: readonly string[]
}

function learnt({
  held = noNames,
  paths = {},
  exchanges = {},
  stored = new Map(),
  ...sources
}: Changes): ProviderNames {
  const { metadata = new Map(), listing = null } = sources
  return learnNames({ settings: { paths, exchanges }, catalogue, held, stored }, { metadata, listing })
}

const ids = (names: ProviderNames, selection: Omit<Selection, 'assets'>): string[] =>
  expand(withNames(catalogue, names), [{ assets: ['BTC'], ...selection }]).map(
    ({ series, endpoint }) => `${endpoint.ask} ${series.metric} ${series.exchange}`,
  )

test('exchanges are those that the metadata of a path list, and aggregated stands in where they list it', () => {
  const names = learnt({ metadata: metadataOf({ [skew]: ['bybit', 'deribit'], [margin]: ['aggregated', 'gate.io'] }) })
  expect(ids(names, { paths: [skew, margin], exchanges: ['*'] })).toEqual([
    `${margin} ${margin} aggregated`,
    `${margin} ${margin} gate.io`,
    `${skew} ${skew} bybit`,
    `${skew} ${skew} deribit`,
  ])
  expect(ids(names, { paths: [skew, margin] })).toEqual([`${margin} ${margin} aggregated`, `${skew} ${skew} bybit`])
})

test('the exchange that stands in is the configured one, else the default of the metadata, and stays as it is recorded', () => {
  const metadata = metadataOf({ [skew]: ['bybit', 'deribit', 'okx'] }, ['deribit'])
  const first = learnt({ metadata })
  expect(first.endpoints[skew]?.exchange).toBe('deribit')
  expect(learnt({ metadata, exchanges: { options_exchange_1: 'okx' } }).endpoints[skew]?.exchange).toBe('okx')
  const later = metadataOf({ [skew]: ['binance', 'bybit', 'deribit'] }, ['binance'])
  expect(learnt({ held: first, metadata: later }).endpoints[skew]).toEqual({
    exchanges: ['binance', 'bybit', 'deribit'],
    exchange: 'deribit',
  })
})

test('an exchange with points stays one of its path when the provider no longer lists it', () => {
  const held = learnt({ metadata: metadataOf({ [skew]: ['deribit', 'okx'] }) })
  const names = learnt({
    held,
    metadata: metadataOf({ [skew]: ['okx'] }),
    stored: new Map([[skew, new Set(['deribit'])]]),
  })
  expect(names.endpoints[skew]).toEqual({ exchanges: ['okx', 'deribit'], exchange: 'deribit' })
})

test('a path with a placeholder word gets the only listed path that fits, and of several none', () => {
  const endpoint = catalogue.endpoints.get(premium) as Endpoint
  expect(fittingPaths(endpoint, ['market/acme_premium_pit', 'market/a_b_premium_pit', 'market/acme_premium'])).toEqual([
    'market/acme_premium_pit',
  ])
  const one = learnt({ listing: ['market/acme_premium_pit'] })
  expect(ids(one, { paths: [premium] })).toEqual(['market/acme_premium_pit market/acme_premium_pit null'])
  expect(ids(one, { paths: ['market/acme*'] })).toEqual(['market/acme_premium_pit market/acme_premium_pit null'])
  const two = learnt({ listing: ['market/acme_premium_pit', 'market/other_premium_pit'] })
  expect([two.paths[premium], two.candidates[premium]]).toEqual([
    undefined,
    ['market/acme_premium_pit', 'market/other_premium_pit'],
  ])
  // What is recorded stays, whatever is listed later.
  const later = learnt({ held: one, listing: ['market/acme_premium_pit', 'market/other_premium_pit'] })
  expect([later.paths[premium], later.candidates[premium]]).toEqual(['market/acme_premium_pit', undefined])
})

test('a provider that lists placeholders has no other names', () => {
  const listing = [...catalogue.endpoints.keys()]
  const metadata = metadataOf({ [skew]: catalogue.endpoints.get(skew)?.exchanges ?? [] })
  expect(learnt({ metadata }).endpoints).toEqual({})
  expect(learnt({ listing }).paths[premium]).toBe(premium)
})

test('a refusal of an unknown exchange lists real names only', () => {
  const metadata = metadataOf(
    Object.fromEntries(
      [...catalogue.endpoints.values()]
        .filter(({ exchanges }) => exchanges.length > 0)
        .map(({ path }) => [path, ['aggregated', 'gate.io']]),
    ),
  )
  const named = withNames(catalogue, learnt({ metadata }))
  expect(() => checkSelections(named, [{ assets: ['BTC'], paths: [margin], exchanges: ['gateio'] }])).toThrow(
    /expected one of aggregated, gate\.io, got gateio; did you mean `gate\.io`\?/,
  )
})

test('naming a catalogue a second time changes nothing, and with later names it is as if there had been no earlier ones', () => {
  const first = { ...noNames, paths: { [premium]: 'market/a_premium_pit' }, exchanges: { options_exchange_1: 'a' } }
  const second = { ...noNames, paths: { [premium]: 'market/b_premium_pit' }, exchanges: { options_exchange_1: 'b' } }
  const once = withNames(catalogue, first)
  expect(withNames(once, first)).toEqual(once)
  expect(withNames(once, second).endpoints).toEqual(withNames(catalogue, second).endpoints)
})

function isRefused(work: () => void): boolean {
  try {
    work()
    return false
  } catch {
    return true
  }
}

const realName = fc.constantFrom('a', 'b', 'c', 'd')
const step = fc.record({
  mapped: fc.dictionary(fc.constantFrom('options_exchange_1', 'options_exchange_2', 'exchange_3'), realName, {
    maxKeys: 3,
  }),
  path: fc.option(realName),
  listed: fc.option(fc.uniqueArray(realName, { minLength: 1 })),
  listing: fc.option(fc.uniqueArray(realName)),
})

test('whatever changes in mapping, metadata and listing, no series mixes points of two names and none is lost', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 6 }), (steps) => {
      let held = noNames
      /** Exchanges with points, by metric; and the wire names under which each series was requested. */
      const stored = new Map<string, Set<string>>()
      const requested = new Map<string, Set<string>>()
      for (const { mapped, path, listed, listing } of steps) {
        const paths: Readonly<Record<string, string>> = path === null ? {} : { [premium]: `market/${path}_premium_pit` }
        const configured = { where: (keys: readonly string[]) => keys.join('.'), metrics: { paths, exchanges: mapped } }
        // A run that would change a meaning ends here, before anything is requested.
        if (isRefused(() => refuseChangedNames(configured, held, stored))) continue
        const names = learnt({
          held,
          paths,
          exchanges: mapped,
          stored,
          metadata: listed === null ? new Map() : metadataOf({ [skew]: listed, [margin]: ['aggregated', ...listed] }),
          ...(listing !== null && { listing: listing.map((word) => `market/${word}_premium_pit`) }),
        })
        const named = withNames(catalogue, names)
        const wanted = expand(named, [{ assets: ['BTC'], paths: [skew, margin, premium], exchanges: ['*'] }])
        for (const [metric, exchanges] of stored) {
          if (metric === skew || metric === margin)
            for (const exchange of exchanges)
              expect(wanted.map(({ series }) => `${series.metric} ${series.exchange}`)).toContain(
                `${metric} ${exchange}`,
              )
        }
        for (const { series, endpoint } of wanted) {
          if (endpoint.placeholders.length > 0 || catalogue.placeholderExchanges.has(series.exchange ?? '')) continue
          const wire = requested.get(series.id) ?? new Set()
          requested.set(series.id, wire.add(`${endpoint.ask} ${series.exchange}`))
          stored.set(series.metric, (stored.get(series.metric) ?? new Set()).add(series.exchange ?? ''))
        }
        held = names
      }
      for (const wire of requested.values()) expect(wire.size).toBe(1)
    }),
  )
})
