import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { availableAt } from '../../src/catalog/availability.ts'
import type { Endpoint } from '../../src/catalog/catalogue.ts'
import { loadCatalogue } from '../../src/catalog/load.ts'
import { ceil, end, type Interval, step } from '../../src/base/time.ts'
import { worldAssets } from '../../src/sandbox/world/assets.ts'
import { marketOf } from '../../src/sandbox/world/market.ts'
import { assetHas, launchOf, worldPoint, worldPoints, worldStart } from '../../src/sandbox/world/points.ts'

type WorldSeries = Parameters<typeof worldPoint>[0]

type WorldPoint = NonNullable<ReturnType<typeof worldPoint>>

const catalogue = loadCatalogue()
const endpoints = [...catalogue.endpoints.values()]
const at = (text: string): number => Date.parse(text) / 1000
const never = at('2100-01-01')

function endpointAt(path: string): Endpoint {
  const endpoint = catalogue.endpoints.get(path)
  if (!endpoint) throw new Error(`no ${path}`)
  return endpoint
}

function seriesOf(path: string, asset: string, parts: Partial<WorldSeries> = {}): WorldSeries {
  const endpoint = endpointAt(path)
  return {
    endpoint,
    asset,
    interval: endpoint.intervals.includes('24h') ? '24h' : null,
    currency: endpoint.currencies[0] ?? null,
    exchange: endpoint.exchanges[0] ?? null,
    network: endpoint.networks[0] ?? null,
    seed: 7,
    ...parts,
  }
}

const supported = (endpoint: Endpoint): string[] =>
  worldAssets.filter((asset) => assetHas(endpoint.path, asset)).map((asset) => asset.id)

const values = (points: Iterable<WorldPoint>): Map<number, number> =>
  new Map([...points].flatMap(({ t, body }) => (typeof body.v === 'number' ? [[t, body.v] as const] : [])))

/** Any series of the catalogue under any seed. */
const anySeries: fc.Arbitrary<WorldSeries> = fc.constantFrom(...endpoints).chain((endpoint) => {
  const one = <T>(list: readonly T[]): fc.Arbitrary<T | null> =>
    list.length === 0 ? fc.constant(null) : fc.constantFrom(...list)
  return fc.record({
    endpoint: fc.constant(endpoint),
    asset: fc.constantFrom(...supported(endpoint)),
    interval: one(endpoint.intervals),
    currency: one(endpoint.currencies),
    exchange: one(endpoint.exchanges),
    network: one(endpoint.networks),
    seed: fc.integer({ min: 0, max: 2 ** 31 }),
  })
})

describe('purity', () => {
  test('random access and streaming agree, in any order of asking', () => {
    fc.assert(
      fc.property(
        anySeries,
        fc.integer({ min: at('2009-01-01'), max: at('2026-06-01') }),
        fc.integer({ min: 0, max: 60 }),
        fc.integer({ min: -20 * 86_400, max: 400 * 86_400 }),
        (series, since, size, delay) => {
          const interval = series.interval ?? '24h'
          const grid = Array.from({ length: size }, (_, i) => step(ceil(since, interval), interval, i))
          const until = step(ceil(since, interval), interval, size)
          const now = until + delay
          // Backwards and over a fresh object: no state of the stream can help.
          const alone = grid.toReversed().flatMap((t) => worldPoint({ ...series }, t) ?? [])
          const expected = alone.toReversed().filter(({ t, visibleAt }) => t < until && t < now && visibleAt <= now)
          expect([...worldPoints(series, since, until, now)]).toEqual(expected)
        },
      ),
      { numRuns: 300 },
    )
  })

  test('off the grid, before history and for an asset without the metric there is nothing', () => {
    const series = seriesOf('indicators/aviv_pit', 'BTC')
    const start = worldStart(series) ?? 0
    expect(worldPoint(series, start + 1)).toBeUndefined()
    expect(worldPoint(series, start - 86_400)).toBeUndefined()
    expect(worldPoint(seriesOf('eth2/attestation_count_pit', 'BTC'), at('2024-01-01'))).toBeUndefined()
  })

  test('an unknown path has values, too', () => {
    const endpoint = { ...endpointAt('indicators/aviv_pit'), path: 'novel/thing_pit', ask: 'novel/thing_pit' }
    const series = { ...seriesOf('indicators/aviv_pit', 'ETH'), endpoint }
    const points = [...worldPoints(series, at('2024-01-01'), at('2024-02-01'), never)]
    expect(points.length).toBeGreaterThan(25)
    expect(points.every(({ body }) => body.v === null || Number.isFinite(body.v))).toBe(true)
  })
})

describe('when a point is known', () => {
  const window = [at('2023-09-01'), at('2025-06-01')] as const

  test('never before the end of the interval, and shown from then on', () => {
    let seen = 0
    fc.assert(
      fc.property(anySeries, fc.integer({ min: at('2011-01-01'), max: at('2026-01-01') }), (series, since) => {
        const interval = series.interval ?? '24h'
        for (const { t, computedAt, visibleAt } of worldPoints(series, since, since + 40 * 86_400, never)) {
          expect(Number.isInteger(computedAt)).toBe(true)
          expect(computedAt).toBeGreaterThanOrEqual(end(t, interval))
          expect(visibleAt).toBe(computedAt)
          seen++
        }
      }),
      { numRuns: 40 },
    )
    expect(seen).toBeGreaterThan(1000)
  })

  test.each([
    ['signals/altcoin_index_pit', 10 * 3600 + 900],
    ['market/btc_dominance_pit', 10 * 3600 + 900],
    ['signals/btc_sharpe_signal_pit', 4 * 3600],
  ])('%s comes by its clock, within two minutes but for the late ones', (path, clock) => {
    const delays = [...worldPoints(seriesOf(path, 'BTC'), ...window, never)].map(
      ({ t, computedAt }) => computedAt - t - 86_400 - clock,
    )
    expect(Math.min(...delays)).toBeGreaterThanOrEqual(0)
    expect(delays.filter((delay) => delay <= 120).length / delays.length).toBeGreaterThan(0.97)
  })

  test('the catalogue rules hold for most points of all but two endpoints, which disprove theirs', () => {
    const broken = endpoints.flatMap((endpoint) =>
      (endpoint.intervals.length > 0 ? endpoint.intervals : (['24h'] as const)).flatMap((interval: Interval) => {
        const asset = supported(endpoint)[0] ?? ''
        const series = seriesOf(endpoint.path, asset, { interval })
        const until = interval === '10m' ? window[0] + 20 * 86_400 : window[1]
        const points = [...worldPoints(series, window[0], until, never)]
        const kept = points.filter((p) => p.computedAt <= availableAt(endpoint.rules[interval], p.t, interval) + 120)
        return kept.length / points.length < 0.9 ? [endpoint.path] : []
      }),
    )
    expect([...new Set(broken)].toSorted()).toEqual([
      'indicators/asol_pit',
      'transactions/contract_calls_internal_count_pit',
    ])
  })

  test('about one point in a hundred is hours to days late, so that newer ones are shown before it', () => {
    const series = seriesOf('indicators/sopr_adjusted_pit', 'BTC', { interval: '1h' })
    const points = [...worldPoints(series, ...window, never)]
    const late = points.filter(({ t, computedAt }) => computedAt - t - 3600 >= 3600)
    expect(late.length / points.length).toBeGreaterThan(0.006)
    expect(late.length / points.length).toBeLessThan(0.015)
    const [one] = late.filter(({ t, computedAt }) => computedAt > t + 3 * 3600)
    if (!one) throw new Error('no late point')
    const before = [...worldPoints(series, one.t, never, one.computedAt - 1)]
    expect(before.length).toBeGreaterThan(0)
    expect(before.map(({ t }) => t)).not.toContain(one.t)
    expect([...worldPoints(series, one.t, never, one.computedAt)][0]).toEqual(one)
  })

  test('history from before the launch is computed in one batch at the launch', () => {
    const path = 'indicators/aviv_pit'
    const launch = launchOf(path)
    const [old, ...rest] = [...worldPoints(seriesOf(path, 'BTC'), at('2015-01-01'), at('2019-01-01'), never)]
    expect(old?.computedAt).toBeGreaterThanOrEqual(launch)
    expect(old?.computedAt).toBeLessThan(launch + 6 * 3600)
    expect(new Set(rest.map(({ computedAt }) => computedAt))).toEqual(new Set([old?.computedAt]))
    expect([...worldPoints(seriesOf(path, 'BTC'), 0, never, launch - 1)]).toEqual([])
  })

  test('gaps are rarer than nulls, both rare', () => {
    const since = at('2012-01-01')
    const until = at('2025-01-01')
    const series = seriesOf('indicators/sopr_adjusted_pit', 'BTC', { interval: '1h' })
    const points = [...worldPoints(series, since, until, never)]
    const gaps = 1 - points.length / ((until - since) / 3600)
    const nulls = points.filter(({ body }) => body.v === null).length / points.length
    expect(gaps).toBeGreaterThan(0.0014)
    expect(gaps).toBeLessThan(0.0026)
    expect(nulls).toBeGreaterThan(0.0023)
    expect(nulls).toBeLessThan(0.0037)
  })
})

describe('it looks real', () => {
  const now = at('2025-11-01')

  test.each([
    ['2011-06-10', 2, 80],
    ['2013-11-30', 300, 2500],
    ['2015-01-15', 90, 500],
    ['2017-12-15', 7000, 40_000],
    ['2018-12-15', 1500, 8000],
    ['2021-11-10', 30_000, 130_000],
    ['2022-12-01', 7000, 35_000],
    ['2024-03-10', 30_000, 150_000],
  ])('BTC around %s costs between %d and %d USD under any seed', (date, low, high) => {
    for (const seed of [1, 2, 3, 4, 5]) {
      const price = marketOf('BTC', seed)?.price(at(date)) ?? 0
      expect(price).toBeGreaterThan(low)
      expect(price).toBeLessThan(high)
    }
  })

  test('usd is native times one price, the same one for every metric of an asset', () => {
    for (const asset of ['BTC', 'ETH', 'XAUT', 'USDY', '$TRUMP']) {
      for (const path of ['supply/current_pit', 'transactions/transfers_volume_adjusted_sum_pit']) {
        const read = (currency: string): Map<number, number> =>
          values(worldPoints(seriesOf(path, asset, { currency }), 0, now, never))
        const native = read('native')
        let compared = 0
        for (const [t, usd] of read('usd')) {
          const coins = native.get(t)
          if (coins === undefined) continue
          const price = marketOf(asset, 7)?.price(end(t, '24h')) ?? 0
          // Half a cent, and half of the last decimal of the coins.
          expect(Math.abs(usd - coins * price)).toBeLessThan(0.005_001 + 5e-9 * price)
          compared++
        }
        expect(compared).toBeGreaterThan(200)
      }
    }
  })

  test('supply, blocks and burnt coins never fall; funds begin with no coin', () => {
    const rising = [
      ['supply/current_pit', 'BTC'],
      ['supply/current_pit', 'USDC'],
      ['supply/current_pit', 'BUIDL'],
      ['blockchain/block_height_pit', 'ETH'],
      ['blockchain/block_height_pit', 'SOL'],
      ['supply/burned_pit', 'ETH'],
    ] as const
    for (const [path, asset] of rising) {
      const list = [...values(worldPoints(seriesOf(path, asset, { interval: '1h' }), 0, now, never)).values()]
      expect(list.length).toBeGreaterThan(1000)
      expect(list.findIndex((value, i) => value < (list[i - 1] ?? 0))).toBe(-1)
    }
    expect([...values(worldPoints(seriesOf('supply/current_pit', 'BUIDL'), 0, now, never)).values()][0]).toBe(0)
  })

  test('intervals of one metric agree: levels at the same end, flows by their sum, blocks exactly', () => {
    const day = at('2024-05-14')
    const read = (path: string, interval: Interval): number[] => [
      ...values(worldPoints(seriesOf(path, 'BTC', { interval }), day, day + 86_400, never)).values(),
    ]
    for (const interval of ['10m', '1h'] as const) {
      expect(read('addresses/non_zero_count_pit', interval).at(-1)).toBe(read('addresses/non_zero_count_pit', '24h')[0])
      const sum = (list: number[]): number => list.reduce((total, value) => total + value, 0)
      const volume = 'transactions/transfers_volume_adjusted_sum_pit'
      expect(sum(read(volume, interval)) / sum(read(volume, '24h'))).toBeCloseTo(1, 1)
    }
    const heights = read('blockchain/block_height_pit', '1h')
    const counts = read('blockchain/block_count_pit', '1h')
    expect(heights).toHaveLength(24)
    expect((heights[1] ?? 0) - (heights[0] ?? 0)).toBe(counts[1])
  })

  test('networks and exchanges sum to about the aggregate', () => {
    const mean = (path: string, parts: Partial<WorldSeries>): number => {
      const list = values(worldPoints(seriesOf(path, 'ETH', parts), at('2025-03-01'), at('2025-04-01'), never))
      expect(list.size).toBeGreaterThan(25)
      return [...list.values()].reduce((sum, value) => sum + value, 0) / list.size
    }
    const check = (path: string, key: 'network' | 'exchange', all: readonly string[]): void => {
      const parts = all.filter((name) => name !== 'aggregated').map((name) => mean(path, { [key]: name }))
      expect(parts.length).toBeGreaterThan(8)
      const sum = parts.reduce((total, part) => total + part, 0)
      expect(Math.abs(sum / mean(path, { [key]: 'aggregated' }) - 1)).toBeLessThan(0.08)
    }
    const active = endpointAt('addresses/active_count_pit')
    check(active.path, 'network', active.networks)
    const interest = endpointAt('derivatives/futures_open_interest_cash_margin_sum_pit')
    check(interest.path, 'exchange', interest.exchanges)
  })

  test('values stay where they belong', () => {
    const inside = (path: string, low: number, high: number): void => {
      const list = [...values(worldPoints(seriesOf(path, 'BTC'), 0, now, never)).values()]
      expect(list.length).toBeGreaterThan(1000)
      expect(Math.min(...list)).toBeGreaterThanOrEqual(low)
      expect(Math.max(...list)).toBeLessThanOrEqual(high)
    }
    inside('market/correlation_btc_7d_pit', -1, 1)
    inside('indicators/accumulation_trend_score_pit', 0, 1)
    inside('market/btc_dominance_pit', 0, 100)
    inside('signals/btc_risk_index_pit', 0, 1)
    inside('indicators/cdd_supply_adjusted_binary_pit', 0, 1)
  })

  test('the goldilocks signal follows its two inputs', () => {
    const read = (path: string): Map<number, number> => values(worldPoints(seriesOf(path, 'BTC'), 0, now, never))
    const one = read('signals/btc_bss_indicator_1_pit')
    const three = read('signals/btc_bss_indicator_3_pit')
    let on = 0
    for (const [t, signal] of read('signals/btc_bss_goldilocks_pit')) {
      const first = one.get(t)
      const third = three.get(t)
      if (first === undefined || third === undefined) continue
      expect(signal).toBe(first > 52 && first < 65 && third < 4 ? 1 : 0)
      on += signal
    }
    expect(on).toBeGreaterThan(20)
  })

  test('nested values come in every form, and net volume is what it says', () => {
    const t = at('2024-05-14')
    const body = (path: string, asset = 'BTC'): Readonly<Record<string, unknown>> =>
      worldPoint(seriesOf(path, asset), t)?.body ?? {}
    expect(Object.keys(body('options/iv_call_delta_25_pit').o as object)).toEqual(['1w', '1m', '3m', '6m'])
    expect(Object.keys(body('options/25delta_skew_call_put_all_pit').v as object)).toHaveLength(4)
    const quantiles = body('indicators/cost_basis_distribution_quantiles_pit').v as number[]
    expect(quantiles).toHaveLength(100)
    expect(quantiles).toEqual(quantiles.toSorted((a, b) => a - b))
    const heat = body('indicators/cost_basis_distribution_heatmap_pit')
    expect(Object.keys(heat)).toEqual(['prices', 'partitions'])
    expect(heat.prices).toHaveLength((heat.partitions as number[]).length)
    const leaves = (path: string): Record<string, number> => body(path, 'ETH').o as Record<string, number>
    const [into, out, net] = ['deposits', 'withdrawals', 'net_volume'].map((name) =>
      leaves(`bridges/${name}_by_chain_pit`),
    )
    const told = Object.keys(net ?? {}).filter((chain) => net?.[chain] !== null)
    expect(told.length).toBeGreaterThan(2)
    for (const chain of told) {
      if (into?.[chain] === null || out?.[chain] === null) continue
      expect(net?.[chain]).toBeCloseTo((into?.[chain] ?? 0) - (out?.[chain] ?? 0), 2)
    }
    const shares = Object.values(body('bridges/total_value_locked_by_chain_relative_pit', 'ETH').v as object)
    expect(shares.reduce((sum, share) => sum + Number(share), 0)).toBeLessThanOrEqual(1 + 1e-9)
  })

  test('assets: real ones, awkward ids, contracts to link by', () => {
    const ids = worldAssets.map((asset) => asset.id)
    expect(ids.length).toBeGreaterThanOrEqual(40)
    expect(new Set(ids).size).toBe(ids.length)
    expect(ids).toEqual(expect.arrayContaining(['BTC', 'ETH', '$TRUMP', 'a.b', '1', '00', 'stETH', 'PEPE 2.0', 'btc']))
    const gold = worldAssets.find((asset) => asset.id === 'XAUT')
    expect(gold).toMatchObject({ chain_id: 'eip155:1', address: expect.stringMatching(/^0x[0-9a-f]{40}$/) })
    for (const endpoint of endpoints) expect(supported(endpoint), endpoint.path).not.toEqual([])
  })
})
