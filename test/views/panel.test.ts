import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Lake, Panel } from '../../src/index.ts'
import { catalogue } from '../helpers/sandbox-client.ts'
import { nested, plain, point, supply, threeDays } from '../helpers/lakes/three-days.ts'

const sevens = 'indicators/asol_pit'
let lake: Lake
let remove = async (): Promise<void> => undefined
beforeAll(async () => {
  ;({ lake, remove } = await threeDays((day) => [
    point(plain, day, day === 3 ? {} : { v: day }),
    point(sevens, day, { v: 7 }),
  ]))
})
afterAll(async () => await remove())

const decisions = [{ asset: 'BTC', ts: '2024-03-04T00:10:00Z' }]
const cell = async (panel: Partial<Panel>, name: string): Promise<unknown> => {
  const table = await lake.panel({ decisions, metrics: [name], ...panel })
  return table.get(0)?.[name]
}

test('options of a panel apply to one metric each, and a component may be named with its pointer', async () => {
  expect(await cell({ component: '/c' }, `${nested}#/a/b`)).toBe(30)
  expect(await cell({ latencySeconds: 60 }, supply)).toBe(2)
  await expect(cell({ exchange: 'nowhere' }, 'derivatives/futures_volume_daily_sum_pit')).rejects.toThrow()
  await expect(cell({ network: 'nowhere' }, supply)).resolves.toBe(3)
})

test('a panel of many metrics gives for each the values of a panel of it alone', async () => {
  const held = [supply, plain, sevens, `${nested}#/a/b`]
  const others = [...catalogue.endpoints.values()]
    .filter(({ intervals }) => intervals.includes('24h'))
    .map(({ path }) => path)
    .filter((path) => !held.includes(path) && path !== nested)
  // The first and the last of the metrics that are told apart together, the first of the next, the last of all.
  const metrics = others.slice(0, 19)
  for (const [n, place] of [0, 7, 8, 19].entries()) metrics.splice(place, 0, held[n] ?? '')
  const asked = [...decisions, { asset: 'BTC', ts: '2024-03-03T00:10:00Z' }, { asset: 'BTC', ts: null }, ...decisions]
  const fields = ['v', 'available_at', 'age'] as const
  const table = await lake.panel({ decisions: asked, metrics, fields })
  const names = metrics.flatMap((metric) => [metric, `${metric}.available_at`, `${metric}.age`])
  expect(table.schema.fields.map(({ name }) => name)).toEqual(['asset', 'ts', ...names])
  const rows = table.toArray().map((row) => row.toJSON() as Record<string, unknown>)
  const told = (metric: string): unknown[] => rows.map((row) => row[metric])
  expect(told(supply)).toEqual([3, 2, null, 3])
  expect(told(plain)).toEqual([null, 2, null, null])
  expect(told(sevens)).toEqual([7, 7, null, 7])
  expect(told(`${nested}#/a/b`)).toEqual([30, 20, null, 30])
  expect(told(`${plain}.available_at`)).toEqual([4, 3, null, 4].map((day) => day && Date.UTC(2024, 2, day, 0, 10)))
  expect(others.slice(0, 19).flatMap(told)).toEqual(Array.from({ length: 19 * 4 }, () => null))
  for (const metric of held) {
    const alone = await lake.panel({ decisions: asked, metrics: [metric], fields })
    for (const name of [metric, `${metric}.available_at`, `${metric}.age`])
      expect([...(alone.getChild(name) ?? [])]).toEqual([...(table.getChild(name) ?? [])])
  }
})

test('a caller’s columns and tables keep what they hold, whatever they are called', async () => {
  const names = ['decision', '_row', 'metric', 't', 'v', 'asked', 'wide', 'own']
  const own = { ...decisions[0], ...Object.fromEntries(names.map((name, n) => [name, `mine ${n}`])) }
  await lake.sql(`CREATE TEMP TABLE decisions AS SELECT 42 AS answer`)
  await lake.sql(`CREATE TEMP TABLE _pit_panel0 AS SELECT 43 AS answer`)
  for (const ts of ['2024-03-04T00:10:00Z', '2024-03-03T00:10:00Z']) {
    const one = { ...own, asset: 'BTC', ts }
    const table = await lake.panel({ decisions: [one, { ...one, decision: 'second' }], metrics: [supply] })
    expect(table.schema.fields.map(({ name }) => name)).toEqual(['asset', 'ts', ...names, supply])
    const rows = table.toArray().map((row) => row.toJSON())
    expect(rows.map((row) => [row['decision'], row['_row'], row[supply]])).toEqual(
      ['mine 0', 'second'].map((word) => [word, 'mine 1', ts.startsWith('2024-03-04') ? 3 : 2]),
    )
  }
  expect((await lake.sql('FROM decisions')).get(0)?.answer).toBe(42)
  expect((await lake.sql('FROM _pit_panel0')).get(0)?.answer).toBe(43)
  const left = await lake.sql(`SELECT count(*) AS n FROM duckdb_tables() WHERE table_name LIKE '\\_pit%' ESCAPE '\\'`)
  expect(left.get(0)?.n).toBe(1n)
  const clash = [{ asset: 'BTC', ts: '2024-03-04', [supply.toUpperCase()]: 1 }]
  await expect(lake.panel({ decisions: clash, metrics: [supply] })).rejects.toThrow(/got SUPPLY.*rename it/)
})
