import { expect, test } from 'vitest'
import { publishedTables } from '../../src/maintenance/publish/tables.ts'
import { Engine } from '../../src/lake/store/engine.ts'
import { catalogue } from '../helpers/sandbox-client.ts'

const mark = { version: 4, at: 1_000_000_000_000_000 }
const moment = (seconds: number): string => `make_timestamptz(${mark.at + seconds * 1_000_000}::BIGINT)`

/** What the published table makes of rows that its view shows. */
async function growthOf(name: string, rows: readonly string[]) {
  const table = publishedTables({ root: '/', catalogue, files: [] }).find((one) => one.name === name)
  const [folder = '', view = ''] = name.replace('_', ' ').replace('snapshot ', 'snapshots ').split(' ')
  using engine = await Engine.open(':memory:', { threads: 1 })
  await engine.run(`CREATE SCHEMA ${folder}`)
  await engine.run(`CREATE VIEW ${folder}.${view} AS ${rows.join(' UNION ALL ')}`)
  if (!table?.growth) throw new Error(name)
  return { fresh: await table.growth.fresh(engine, mark), stale: await table.growth.stale?.values(engine, mark) }
}

test('a version of a record is new to a publish where a later commit began or ended it', async () => {
  const row = (from: number, to?: number): string =>
    `SELECT ${moment(from)} AS valid_from, ${to === undefined ? `'infinity'::TIMESTAMPTZ` : moment(to)} AS valid_to`
  const old = [row(-5), row(-9, -5), row(0), row(-5, 0)]
  expect((await growthOf('history_issuers', old)).fresh).toBe(0)
  expect((await growthOf('history_issuers', [...old, row(1)])).fresh).toBe(1)
  expect((await growthOf('history_issuers', [...old, row(-5, 1)])).fresh).toBe(1)
  expect((await growthOf('history_issuers', [...old, row(0, 1), row(1), row(1, 2)])).fresh).toBe(3)
})

test('a snapshot is new to a publish where a later commit made it, and with it all of its date', async () => {
  const row = (date: string, seconds: number): string =>
    `SELECT DATE '${date}' AS snapshot_date, ${moment(seconds)} AS observed_at`
  const old = [row('2026-01-01', -9), row('2026-01-02', 0)]
  expect(await growthOf('snapshot_issuers', old)).toEqual({ fresh: 0, stale: [] })
  const more = await growthOf('snapshot_issuers', [...old, row('2026-01-02', 1), row('2026-01-03', 2)])
  expect([more.fresh, more.stale?.toSorted()]).toEqual([2, ['2026-01-02', '2026-01-03']])
})
