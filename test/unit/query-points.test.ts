import { afterAll, beforeAll, expect, test } from 'vitest'
import { type PointsFilter, pointsSql, standardsOf } from '../../src/query/points.ts'
import { Engine } from '../../src/lake/store/engine.ts'

let engine: Engine
beforeAll(async () => {
  engine = await Engine.open(':memory:', { threads: 1 })
  await engine.run(`CREATE VIEW endpoints AS FROM (VALUES
    ('a/x', '24h', NULL::VARCHAR, NULL::VARCHAR, NULL::VARCHAR), ('supply/current_pit', '24h', 'native', NULL, 'eth'))
    AS e(metric, default_interval, default_currency, default_exchange, default_network)`)
  // Newest first: an order has to be made.
  await engine.run(`CREATE TABLE points AS SELECT metric, asset, "interval", currency, NULL::VARCHAR AS exchange, network,
      TIMESTAMPTZ '2024-03-01 00:00:00+00' + to_days(CAST(n AS INTEGER)) AS t, n AS v
    FROM (SELECT unnest([3, 2, 1, 0]) AS n), (VALUES ('a/x', 'BTC', '24h', NULL, NULL), ('a/x', 'BTC', '1h', NULL, NULL),
      ('a/x', 'ADA', '24h', NULL, NULL), ('supply/current_pit', 'BTC', '24h', 'native', 'eth'),
      ('supply/current_pit', 'BTC', '24h', 'usd', 'eth'), ('own/y', 'BTC', '24h', 'eur', NULL)) AS s(metric, asset, "interval", currency, network)`)
})
afterAll(() => engine.close())

async function told(filter: PointsFilter): Promise<readonly string[]> {
  const rows = await engine.rows<
    Record<'metric' | 'asset' | 'interval', string> & { currency: string | null; v: number }
  >(pointsSql(filter, await standardsOf(engine)))
  return rows.map(({ metric, asset, interval, currency, v }) =>
    [metric, asset, interval, currency ?? '', v].join(' ').replace('  ', ' '),
  )
}

test('a range of t holds its beginning and not its end, and points stand in the order of t', async () => {
  const of = { metrics: 'a/x', assets: 'BTC' }
  expect(await told({ ...of, since: '2024-03-02', until: '2024-03-04' })).toEqual(['a/x BTC 24h 1', 'a/x BTC 24h 2'])
  expect(await told({ ...of, since: new Date('2024-03-03T00:00:00Z') })).toEqual(['a/x BTC 24h 2', 'a/x BTC 24h 3'])
  expect(await told({ ...of, until: '2024-03-02T00:00:00.000001Z' })).toEqual(['a/x BTC 24h 0', 'a/x BTC 24h 1'])
  expect(await told({ ...of, since: '2024-03-02', until: '2024-03-02' })).toEqual([])
})

test('without a named dimension each metric uses its default, and an unknown one gives all', async () => {
  const first = { until: '2024-03-02' }
  expect(await told(first)).toEqual([
    'a/x ADA 24h 0',
    'a/x BTC 24h 0',
    'own/y BTC 24h eur 0',
    'supply/current_pit BTC 24h native 0',
  ])
  expect(await told({ ...first, metrics: ['supply/current_pit', 'a/x'], interval: '*', currency: '*' })).toEqual([
    'a/x ADA 24h 0',
    'a/x BTC 1h 0',
    'a/x BTC 24h 0',
    'supply/current_pit BTC 24h native 0',
    'supply/current_pit BTC 24h usd 0',
  ])
  await expect(told({ metrics: ['price_usd', 'a/x'] })).rejects.toThrow('price_usd alone')
})
