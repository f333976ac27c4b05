import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Lake, openLake, rows, type SweepGrid } from '../../src/index.ts'
import {
  combinationsOf,
  deflatedSharpe,
  expectedBest,
  normalProbability,
  normalQuantile,
  statisticsOf,
} from '../../src/trust/results/sweep.ts'
import { type OpenedLake, supply, threeDays } from '../helpers/lakes/three-days.ts'
import { randomOf } from '../helpers/random.ts'

/* Sweeps: every try is recorded before any result, and chance grows with their number. */

/** What every library computes; `test_sweep.py` reads the same file. */
interface Expected {
  readonly published: Readonly<
    Record<
      | 'observations'
      | 'annual_sharpe'
      | 'periods'
      | 'skewness'
      | 'kurtosis'
      | 'annual_variance'
      | 'tries'
      | 'deflated_sharpe',
      number
    >
  >
  readonly returns: readonly {
    readonly returns: readonly number[]
    readonly sharpe: number
    readonly skewness: number
    readonly kurtosis: number
  }[]
  readonly quantiles: readonly (readonly [probability: number, value: number])[]
  readonly probabilities: readonly (readonly [value: number, probability: number])[]
}

const expected = JSON.parse(readFileSync(new URL('../golden/sweep.json', import.meta.url), 'utf8')) as Expected

interface SweptRow {
  readonly seed: number
  readonly observations: number
  readonly sharpe: number | null
  readonly deflated_sharpe: number | null
  readonly tries: number
  readonly query_sha256: string
}

let opened: OpenedLake
let lake: Lake
beforeAll(async () => {
  opened = await threeDays(() => [])
  ;({ lake } = opened)
})
afterAll(async () => opened.remove())

/** SQL of 400 returns that are the same for the same seed. */
function drawnReturns(seed: unknown): string {
  const random = randomOf(Number(seed))
  const values = Array.from({ length: 400 }, () => `(${random() - 0.48})`).join(', ')
  return `SELECT CAST(ret AS DOUBLE) AS ret FROM (VALUES ${values}) AS r (ret)`
}

const sweepSeeds = async (seeds: readonly number[]): Promise<SweptRow[]> =>
  rows<SweptRow>(await lake.sweep(({ seed }) => drawnReturns(seed), { seed: seeds }))

test('the published example of a deflated Sharpe ratio holds', () => {
  const { published: one } = expected
  const { observations, skewness, kurtosis } = one
  const own = { observations, sharpe: one.annual_sharpe / Math.sqrt(one.periods), skewness, kurtosis }
  const tried = [-1, 1].map((sign) => (Math.sqrt(one.annual_variance / one.periods) * sign) / Math.sqrt(2))
  expect(deflatedSharpe(own, expectedBest(tried, one.tries))).toBeCloseTo(one.deflated_sharpe, 3)
})

test('moments of returns are those that every library computes', () => {
  for (const { returns, ...moments } of expected.returns) {
    const { sharpe, skewness, kurtosis } = statisticsOf(returns)
    expect(sharpe).toBeCloseTo(moments.sharpe, 12)
    expect(skewness).toBeCloseTo(moments.skewness, 12)
    expect(kurtosis).toBeCloseTo(moments.kurtosis, 12)
  }
})

test('probabilities and quantiles of the normal distribution are those of the Python standard library', () => {
  for (const [value, probability] of expected.probabilities)
    expect(normalProbability(value)).toBeCloseTo(probability, 14)
  // Near one a double leaves seven digits of the quantile.
  for (const [probability, value] of expected.quantiles) expect(normalQuantile(probability)).toBeCloseTo(value, 7)
})

test('returns that never vary, or fewer than three, have no Sharpe ratio', () => {
  for (const returns of [Array.from({ length: 50 }, () => 0.1), [1, 2]]) {
    const own = statisticsOf(returns)
    expect([own.sharpe, deflatedSharpe(own, 0)]).toEqual([null, null])
  }
})

test('a grid gives every combination once, the last parameter fastest', () => {
  expect(combinationsOf({ days: [1, 2], asset: ['BTC', 'ETH'] })).toEqual([
    { days: 1, asset: 'BTC' },
    { days: 1, asset: 'ETH' },
    { days: 2, asset: 'BTC' },
    { days: 2, asset: 'ETH' },
  ])
})

test.each<[SweepGrid]>([
  [{}],
  [{ days: [] }],
  [{ days: '12' as never }],
  [{ sharpe: [1] }],
  [{ Days: [1] }],
  [{ days: [null as never] }],
  [{ days: [undefined as never] }],
  [{ days: [Number.NaN] }],
  [{ 'a b': [1] }],
])('a grid that is none is refused: %j', (grid) => {
  expect(() => combinationsOf(grid)).toThrow(/^sweep: /)
})

test('a sweep records each try once and counts those of earlier sweeps', async () => {
  const seen = await lake.version()
  const first = await sweepSeeds([1, 2, 3])
  expect(first.map(({ tries, observations }) => [tries, observations])).toEqual([1, 2, 3].map(() => [3, 400]))
  const hashes = [1, 2, 3].map((seed) => createHash('sha256').update(drawnReturns(seed)).digest('hex'))
  expect(first.map((row) => row.query_sha256)).toEqual(hashes)
  const again = await sweepSeeds([3, 4])
  expect(again.map(({ tries }) => tries)).toEqual([4, 4])
  expect(again[0]?.sharpe).toBe(first[2]?.sharpe)
  // More tries leave less of the same result.
  expect(again[0]?.deflated_sharpe).not.toBe(first[2]?.deflated_sharpe)
  expect(await lake.version()).toBe(seen)
  expect(await lake.refresh()).toBe(seen + 2)
})

test('the Sharpe ratio of a sweep is annualised by the periods of a year', async () => {
  const query = () => 'SELECT unnest([0.01, -0.02, 0.03, 0.01]) AS ret'
  const sharpeOf = async (periods: number): Promise<number> => {
    const [row] = rows<SweptRow>(await lake.sweep(query, { n: [1] }, { periods }))
    return row?.sharpe ?? Number.NaN
  }
  expect((await sharpeOf(252)) / (await sharpeOf(1))).toBeCloseTo(Math.sqrt(252), 10)
})

test('scripts of a sweep may make the same table', async () => {
  const table = await lake.sweep(
    ({ n }) => `CREATE TEMP TABLE d AS SELECT ${String(n)} AS n; SELECT n * i * i AS RET FROM d, range(9) AS r (i)`,
    { n: [1, 2] },
  )
  expect(rows<SweptRow>(table).map(({ observations }) => observations)).toEqual([9, 9])
})

test('a sweep stands in the state of knowledge of its lake', async () => {
  const early = await openLake(opened.root, { asOf: '2024-03-03T12:00:00Z' })
  const query = () => `SELECT v AS ret FROM points WHERE metric = '${supply}' AND currency = 'native'`
  const counts = async (own: Lake): Promise<unknown> =>
    rows<SweptRow>(await own.sweep(query, { n: [1] }))[0]?.observations
  expect([await counts(early), await counts(lake)]).toEqual([2, 3])
  await early.close()
})

test('a try that fails was recorded before it ran', async () => {
  const triesSoFar = async (): Promise<number> => (await sweepSeeds([1]))[0]?.tries ?? Number.NaN
  const before = await triesSoFar()
  await expect(lake.sweep(() => 'SELECT no_such_column', { n: [1] })).rejects.toThrow('sweep at n=1')
  expect(await triesSoFar()).toBe(before + 1)
})

test.each([
  [
    'a column of a different name',
    'SELECT 1 AS other',
    /^sweep at n=1: sweep: returns: expected one of the columns other/,
  ],
  ['SQL that is none', 'SELECT nope', /^sweep at n=1: /],
  ['returns that are infinite', "SELECT CAST('inf' AS DOUBLE) AS ret", /^sweep at n=1: .*finite returns/],
  ['no SQL', 7 as never, /^sweep: query: expected a function that returns SQL/],
])('a sweep refuses %s and names the try', async (_, query, words) => {
  await expect(lake.sweep(() => query, { n: [1] })).rejects.toThrow(words)
})
