import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { loadCatalogue } from '../../src/catalog/load.ts'
import { openLake } from '../../src/index.ts'
import { plain, point, supply, threeDays } from '../helpers/lakes/three-days.ts'
import { makeViews } from '../helpers/views.ts'

let days: Awaited<ReturnType<typeof threeDays>>
beforeAll(async () => (days = await threeDays((day) => [point(plain, day, { v: day })])))
afterAll(async () => days.remove())

const decisions = [
  { asset: 'BTC', ts: '2024-03-04T00:10:00Z', why: 'late' },
  { asset: 'BTC', ts: '2024-03-03', why: 'early' },
  { asset: 'none', ts: '2024-03-04', why: 'unknown' },
]

test('a join gives each decision in its order, with the instants behind the value', async () => {
  const { lake } = days
  const table = await lake.pitJoin({ decisions, metric: supply })
  expect(table.schema.fields.map(({ name }) => name)).toEqual([
    'asset',
    'ts',
    'why',
    't',
    'available_at',
    'v',
    'o',
    'age',
  ])
  expect(table.toArray().map((row) => [row?.why, row?.v])).toEqual([
    ['late', 3],
    ['early', 1],
    ['unknown', null],
  ])
  expect(lake.notes.join()).toMatch(/nothing is stored of 'supply\/current_pit' for asset 'none'/)
  const asked = await lake.pitJoin({ decisions, metric: supply, latency: '1m', currency: 'usd', maxAge: '2d' })
  expect(asked.toArray().map((row) => row?.v)).toEqual([200, 100, null])
  await expect(lake.pitJoin({ decisions: [{ asset: 'BTC', ts: null, v: 1 }], metric: supply })).rejects.toThrow(
    /the join adds.*rename it/,
  )
})

test('calendars, history, the catalogue and the status', async () => {
  const { lake, root } = days
  const grid = await lake.calendar({
    since: '2024-01-31',
    until: '2024-04-01',
    step: '1 month',
    assets: ['BTC', 'ETH'],
  })
  expect(grid.toArray().map((row) => `${row?.asset} ${new Date(row?.ts).toISOString().slice(0, 10)}`)).toEqual([
    'BTC 2024-01-31',
    'ETH 2024-01-31',
    'BTC 2024-02-29',
    'ETH 2024-02-29',
    'BTC 2024-03-31',
    'ETH 2024-03-31',
  ])
  expect(
    (await lake.calendar({ since: '2024-01-01', until: '2024-01-03', step: '1 day' })).schema.fields.map(
      ({ name }) => name,
    ),
  ).toEqual(['ts'])
  expect((await lake.history('products')).numRows).toBe(30)
  await expect(lake.history('products; DROP')).rejects.toThrow(/such as products/)
  expect((await lake.metrics()).numRows).toBe(loadCatalogue().endpoints.size)
  const row = (await lake.status()).get(0)
  expect([row?.folder, Number(row?.version), Number(row?.points)]).toEqual([root, 1, 12])
  expect(lake.folder).toBe(root)
})

test('a lake in TypeScript answers like the commands', async () => {
  const lake = await openLake(days.root, { asOf: '2024-03-03' })
  const out = join(days.root, 'stamped.parquet')
  const query = `WITH d AS (SELECT 'BTC' AS asset, ts FROM calendar('2024-03-03', '2024-03-06', '1 day'))
    SELECT ts, v FROM pit_join('d', '${supply}', '24h') ORDER BY ts`
  const stamped = await lake.stamp(query, out)
  expect([stamped.rows, stamped.version, stamped.variables['as_of']]).toEqual([3, 1, '2024-03-03'])
  expect((await lake.replay(out)).same).toBe(true)
  expect((await lake.lookahead(query, { cutoffs: 2 })).verdict).toBe('clean')
  await expect(lake.stamp('SELECT nope FROM points', out)).rejects.toThrow(/nope/)
  await lake.close()
})

test('a stamp uses each part of the knowledge limits of its lake', async () => {
  const told = { asOf: '2024-04-01T13:00:00Z', observedAsOf: new Date('2024-05-01T00:00:00Z') }
  const lake = await openLake(days.root, { ...told, backfill: 'rule', registryBackfill: true, set: { mine: 'x' } })
  const query = `SELECT count(*) AS n, getvariable('mine') AS mine FROM points`
  const { variables } = await lake.stamp(query, join(days.root, 'state.parquet'))
  await lake.close()
  expect(variables).toEqual({
    as_of: told.asOf,
    observed_as_of: '2024-05-01T00:00:00.000Z',
    backfill: 'rule',
    registry_backfill: true,
    mine: 'x',
  })
})

test('a stamp records the names of variables in lower case', async () => {
  const lake = await openLake(days.root, { set: { AS_OF: '2024-04-01', Mine: 'x' } })
  const { variables } = await lake.stamp(`SELECT getvariable('mine') AS mine`, join(days.root, 'capitals.parquet'))
  await lake.close()
  expect(variables).toEqual({ as_of: '2024-04-01', mine: 'x' })
})

test('variables, column names and counts reach a command as they were given, not as text of a command line', async () => {
  const lake = await openLake(days.root, { set: { code: '007', share: '0.50', flag: 'true' } })
  const query = `SELECT getvariable('code') AS code, getvariable('share') AS share, getvariable('flag') AS flag`
  const { variables } = await lake.stamp(query, join(days.root, 'texts.parquet'))
  expect(variables).toEqual({ code: '007', share: '0.50', flag: 'true' })
  const later = `WITH d AS (SELECT 'BTC' AS asset, ts FROM calendar('2024-03-02', '2024-03-06', '1 day'))
    SELECT ts, v, lead(v) OVER (ORDER BY ts) AS "next, later" FROM pit_join('d', '${supply}', '24h') ORDER BY ts`
  expect((await lake.lookahead(later, { cutoffs: 2, labels: ['next, later'] })).verdict).toBe('clean')
  await expect(lake.lookahead(later, { cutoffs: 2.5 })).rejects.toThrow(/^cutoffs: expected a whole number from 1/)
  await expect(lake.stamp(query, 'texts.csv')).rejects.toThrow(/expected a name that ends in \.parquet/)
  await lake.close()
})

test('a lake stands at its version until it is refreshed', async () => {
  const lake = await openLake(days.root)
  const before = await lake.version()
  await makeViews(days.root)
  expect(await lake.version()).toBe(before)
  expect(await lake.refresh()).toBeGreaterThanOrEqual(before)
  expect((await lake.points({ metrics: supply })).numRows).toBe(3)
  await lake.close()
})
