// @module-tag full
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openAltered } from '../../src/query/altered-lake.ts'
import { openQuery } from '../../src/query/lake.ts'
import { asLateAs, delayedPoints, laterBy } from '../../src/trust/results/stress-delays.ts'
import type { Row } from '../../src/lake/store/engine.ts'
import { lateMetric, lateDaysAndProducts } from '../helpers/lakes/late-days-and-products.ts'
import type { TestLake } from '../helpers/lakes/lake-recipe.ts'
import { openTestLake } from '../helpers/lakes/make-lake.ts'
import { signalAndReturns, signalMetrics } from '../helpers/lakes/signal-and-returns.ts'
import { micros } from '../helpers/instants.ts'
import { multiset } from '../helpers/views.ts'

type Delay = ReturnType<typeof laterBy>

const lakes: Record<string, TestLake> = {}
beforeAll(async () => {
  lakes['trust'] = await openTestLake(lateDaysAndProducts)
  lakes['stress'] = await openTestLake(signalAndReturns)
})
afterAll(() => {
  for (const lake of Object.values(lakes)) lake.remove()
})

async function answered(lake: 'trust' | 'stress', sql: string, delay?: Delay, metrics?: readonly string[]) {
  const root = lakes[lake]?.root ?? ''
  using session = await (delay === undefined ? openQuery(root) : openAltered(root, delayedPoints(delay, metrics)))
  return await session.rows(sql)
}

const decisions = `WITH d AS (SELECT ts, asset, row_number() OVER (ORDER BY ts, asset) AS n
  FROM calendar('2024-02-10 00:03', '2024-02-22', INTERVAL 11 MINUTE), (VALUES ('BTC'), ('ETH')) a(asset))`

test.each([
  ['1 minute', 60, `pit_join('d', '${lateMetric}', '24h'`],
  ['15 minutes', 900, `pit_join('d', '${lateMetric}', '24h', max_age := '30 hours'`],
  ['2 days', 172_800, `pit_window('d', '${lateMetric}', '24h', 3, skip_nulls := true`],
  ['70 minutes', 4200, `pit_long('d', ['${lateMetric}'], '24h'`],
])('a latency of %s in a join is a lake whose points are known that much later', async (words, seconds, join) => {
  const plain = `${decisions} SELECT * EXCLUDE (available_at) FROM ${join})`
  const asked = plain.replace(/\)$/, `, latency := INTERVAL '${words}')`)
  const [base, latency, delayed] = [
    await answered('trust', plain),
    await answered('trust', asked),
    await answered('trust', plain, laterBy('latency', seconds)),
  ]
  expect(multiset(delayed)).toEqual(multiset(latency))
  expect(multiset(delayed)).not.toEqual(multiset(base))
})

test('a latency and a delayed rule add up, in a join as in the view', async () => {
  const join = (latency: string): string =>
    `${decisions} SELECT n, t, v FROM pit_join('d', '${lateMetric}', '24h', latency := '${latency}')`
  const both = await answered('trust', join('10 minutes'), laterBy('lag', 1200))
  expect(multiset(both)).toEqual(multiset(await answered('trust', join('30 minutes'))))
  const shift = await answered(
    'trust',
    'SELECT metric, asset, t, epoch_us(available_at) AS a, v FROM points',
    laterBy('lag', 90),
  )
  const real = await answered('trust', 'SELECT metric, asset, t, epoch_us(available_at) + 90000000 AS a, v FROM points')
  expect(multiset(shift)).toEqual(multiset(real))
})

test('a minimum lag delays only faster points of its endpoint and interval, and provider clocks stay', async () => {
  const { signal, wave } = signalMetrics
  const lag = { p50: 120, p95: 420, p99: 600, max: 720 }
  const unknown = { p50: null, p95: null, p99: null, max: null }
  const delay = asLateAs('p95', [
    { metric: signal, interval: '24h', ...lag, p95: 9e6 },
    { metric: signal, interval: '1h', ...lag },
    { metric: wave, interval: '24h', ...unknown },
  ])
  const sql =
    'SELECT metric, CAST(t AS VARCHAR) AS t, "interval", available_at, computed_at, basis, v FROM points ORDER BY 1, 3, epoch_us(points.t)'
  const told = await answered('stress', sql, delay)
  const real = await answered('stress', sql)
  const text = (row: Row | undefined, column: string): string => {
    const value = row?.[column]
    return typeof value === 'string' ? value : ''
  }
  let moved = 0
  for (const [i, row] of real.entries()) {
    const end = micros(text(row, 't').replace(' ', 'T').replace('+00', 'Z')) + 3_600_000_000
    const before = micros(text(row, 'available_at'))
    const after = row['metric'] === signal ? Math.max(before, end + 420_000_000) : before
    expect({ ...told[i], available_at: micros(text(told[i], 'available_at')) }).toEqual({ ...row, available_at: after })
    if (after > before) moved++
  }
  expect(real.length).toBeGreaterThan(2000)
  expect(moved).toBe(684)
})

test('a delay of one metric leaves the others as they are', async () => {
  const sql = `SELECT metric, count(*) AS n, sum(epoch_us(available_at) - epoch_us(t)) AS lag FROM points GROUP BY metric ORDER BY 1`
  const lags = async (delay?: Delay, metrics?: readonly string[]): Promise<Map<unknown, number>> =>
    new Map(
      (await answered('stress', sql, delay, metrics)).map((row) => [
        row['metric'],
        Number(row['lag']) / Number(row['n']) / 1e6,
      ]),
    )
  const real = await lags()
  const told = await lags(laterBy('lag', 300), [signalMetrics.wave, signalMetrics.daily])
  const moved = [...real].map(([metric, lag]) => [metric, Math.round((told.get(metric) ?? 0) - lag)])
  expect(Object.fromEntries(moved)).toEqual({
    [signalMetrics.signal]: 0,
    [signalMetrics.hourly]: 0,
    [signalMetrics.wave]: 300,
    [signalMetrics.daily]: 300,
  })
})
