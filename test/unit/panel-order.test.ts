import { afterAll, beforeAll, expect, test } from 'vitest'
import { key, membersSql, tableSql } from '../../src/query/panel.ts'
import { Engine } from '../../src/lake/store/engine.ts'

let engine: Engine
beforeAll(async () => {
  engine = await Engine.open()
  // Latest first: an order has to be made.
  await engine.run(`CREATE MACRO calendar(since, until, step) AS TABLE
    SELECT ts FROM (VALUES (TIMESTAMPTZ '2024-03-02 00:00:00+00'), ('2024-03-01 00:00:00+00')) AS v(ts)`)
})
afterAll(() => engine.close())

const grid = { kind: 'calendar', since: '2024-03-01', until: '2024-03-03', step: '1 day' } as const

test('the decisions of a grid stand in the order of their instants, those of one instant in that of the assets', async () => {
  await engine.run(tableSql({ decisions: { ...grid, assets: ['ETH', 'BTC', 'SOL'] } }, 'decided'))
  const rows = await engine.rows<{ asset: string; day: string }>(
    `SELECT asset, CAST(day(ts) AS VARCHAR) AS day FROM decided ORDER BY ${key}`,
  )
  expect(rows.map(({ asset, day }) => `${day} ${asset}`)).toEqual([
    '1 BTC',
    '1 ETH',
    '1 SOL',
    '2 BTC',
    '2 ETH',
    '2 SOL',
  ])
})

test('the members of a universe stand in the order of the moments, then by product and by asset', async () => {
  await engine.run(`CREATE TABLE links AS FROM (VALUES ('b', 'X2'), ('b', 'X1'), ('a', 'Z')) AS l(product_id, metric_asset),
      (SELECT TIMESTAMPTZ '-infinity' AS valid_from, TIMESTAMPTZ '2024-03-02 00:00:00+00' AS valid_to)`)
  await engine.run(`CREATE MACRO pit_universe(moments, condition) AS TABLE
    SELECT m.*, p.product_id FROM query_table(moments) AS m, (VALUES ('c'), ('b'), ('a')) AS p(product_id)`)
  const moments = `SELECT row_number() OVER (ORDER BY ts) AS ${key}, ts FROM calendar('', '', '')`
  const rows = await engine.rows<{ product_id: string; asset: string | null; day: string }>(
    `SELECT asset, product_id, CAST(day(ts) AS VARCHAR) AS day FROM (${membersSql(moments, 'true', key)}) ORDER BY ${key}`,
  )
  // A link that ends at an instant no longer holds at it.
  expect(rows.map(({ day, product_id, asset }) => [day, product_id, asset].join(' '))).toEqual([
    '1 a Z',
    '1 b X1',
    '1 b X2',
    '1 c ',
    '2 a ',
    '2 b ',
    '2 c ',
  ])
})
