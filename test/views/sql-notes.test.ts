import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Lake, noted, openLake } from '../../src/index.ts'
import { plain, point, threeDays } from '../helpers/lakes/three-days.ts'

/* Notes of SQL queries, by what their answer holds and what was known at their `as_of`. */

let root = ''
let lake: Lake
let remove = async (): Promise<void> => undefined
beforeAll(async () => {
  ;({ root, lake, remove } = await threeDays((day) => [point(plain, day, { v: day })]))
})
afterAll(async () => await remove())

const codes = (of: Lake): string[] => noted(of).map(({ code }) => code)
const decisions = (asset: string): string =>
  `WITH d AS (SELECT '${asset}' AS asset, TIMESTAMPTZ '2024-03-04T00:10:00Z' AS ts)`

test.each(['BTX', 'btc'])(
  'a query of a join names the asset %s without points once, as one of the metric',
  async (asset) => {
    await lake.sql(`${decisions(asset)} SELECT v FROM pit_join('d', '${plain}', '24h')`)
    expect(codes(lake)).toEqual(['no-asset'])
  },
)

test.each([
  ['no row', "SELECT id FROM products WHERE id = 'none'", ['before-registry']],
  ['one row without a value', "SELECT max(id) AS id FROM products WHERE id = 'none'", ['before-registry']],
  ['a value', "SELECT max(id) AS id, 'x' AS label FROM products WHERE id = 'none'", []],
] as const)('an answer of the registry with %s is noted as empty or not', async (_, sql, found) => {
  await lake.sql(sql)
  expect(codes(lake)).toEqual(found)
})

test('a query of the registry before its first snapshot is noted, although its answer has a value', async () => {
  const early = await openLake(root, { asOf: '2024-01-02' })
  try {
    await early.sql(`SELECT 'all' AS label FROM (SELECT count(*) FROM products)`)
    expect(codes(early)).toEqual(['registry-unknown'])
    await early.sql(`SELECT 'all' AS label`)
    expect(codes(early)).toEqual([])
  } finally {
    await early.close()
  }
})
