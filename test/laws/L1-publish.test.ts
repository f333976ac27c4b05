// @module-tag full
import { existsSync, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, expect, test } from 'vitest'
import { liveFiles } from '../../src/lake/ledger/index-queries.ts'
import { Ledger } from '../../src/lake/ledger/ledger.ts'
import { Engine, quoteList, type Row } from '../../src/lake/store/engine.ts'
import { inLake } from '../../src/lake/store/layout.ts'
import { viewCaseCommits } from '../helpers/lakes/view-cases.ts'
import { asPublished, asRead, deltaFiles, deltaRows, deltaVersion, publishTo } from '../helpers/delta.ts'
import { makeLake } from '../helpers/lakes/make-lake.ts'
import type { PointRow } from '../helpers/lakes/lake-recipe.ts'
import { freshFolder } from '../helpers/scratch.ts'

let home = ''
let root = ''
let out = ''
freshFolder('publish', (path) => (home = path))
beforeEach(() => {
  root = join(home, 'lake')
  out = join(home, 'out')
})

const point = (asset: string, t: string, available_at: string, more: Partial<PointRow> = {}): PointRow => ({
  metric: 'indicators/sopr_adjusted_pit',
  asset,
  interval: '24h',
  t,
  available_at,
  v: 1.5,
  ...more,
})

/** The points that the journal's files hold. */
async function pointsOfLake(): Promise<readonly Row[]> {
  using ledger = await Ledger.open(root)
  using engine = await Engine.open(':memory:', { threads: 1 })
  const rows: Row[] = []
  for (const { path, metric, interval } of liveFiles(ledger, { table: 'points' })) {
    const own = await engine.rows(
      `SELECT * FROM read_parquet(${quoteList([inLake(root, path)])}, hive_partitioning = false)`,
    )
    for (const { params: _, ...row } of own) {
      const whole: Row = { metric, interval, ...row }
      const available_rule_at = whole['available_rule_at'] ?? whole['available_at'] ?? null
      const computed_at = whole['computed_at'] ?? (whole['basis'] === 'provider' ? whole['available_at'] : null) ?? null
      rows.push({ ...whole, available_rule_at, computed_at })
    }
  }
  return rows
}

async function expectSame(): Promise<void> {
  expect(asRead(await deltaRows(join(out, 'points')))).toEqual(asPublished(await pointsOfLake()))
}

/** Every file below a folder with its size and the time of its last change. */
function standing(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .toSorted()
    .map((name) => `${name} ${statSync(join(folder, name)).mtimeMs} ${statSync(join(folder, name)).size}`)
}

test('a publish writes the points of a lake, a second one only those that arrived since', async () => {
  await makeLake(root, viewCaseCommits)
  await makeLake(root, [
    {
      at: '2030-02-02T00:00:00.000001Z',
      points: [
        point('EDGE', '2024-03-01', '2024-03-02T00:10:00.000500Z', { computed_at: '2024-03-02T00:10:00.000001Z' }),
        point('EDGE', '2024-03-02', '2024-03-03T00:10:00.000999Z', {
          available_rule_at: '2024-03-03T00:05:00.001001Z',
        }),
        point('EDGE', '1969-12-30', '1969-12-31T00:10:00.000001Z', { v: Number.NaN }),
        point('EDGE', '2024-03-03', '2024-03-04T00:10:00.001000Z', { basis: 'provider', o: '{"a":1}', v: null }),
      ],
    },
  ])
  const first = await publishTo(root, out)
  expect(Object.keys(first.tables)).toEqual(expect.arrayContaining(['points', 'components', 'versions', 'violations']))
  await expectSame()

  const before = standing(out)
  expect((await publishTo(root, out)).tables).toEqual({})
  expect(standing(out)).toEqual(before)

  await makeLake(root, [{ at: '2030-02-03T00:00:00Z', points: [point('NEW', '2024-03-01', '2024-03-02T00:10:00Z')] }])
  const second = await publishTo(root, out)
  expect(second.tables['points']).toMatchObject({ delta_version: 1, files_added: 1 })
  expect(second.tables['components']).toBeUndefined()
  await expectSame()
  expect(await deltaRows(join(out, 'points'), 0)).toHaveLength((await pointsOfLake()).length - 1)
})

test('versions are published last and lead to one state of the lake', async () => {
  await makeLake(root, viewCaseCommits)
  await publishTo(root, out)
  await makeLake(root, [{ at: '2030-02-03T00:00:00Z', points: [point('NEW', '2024-03-01', '2024-03-02T00:10:00Z')] }])
  const { version } = await publishTo(root, out)
  const rows = await deltaRows(join(out, 'versions'))
  const told = rows.filter((row) => row['lake_version'] === BigInt(version))
  const tables = readdirSync(out).filter((name) => name !== 'versions' && existsSync(join(out, name, '_delta_log')))
  expect(told.map((row) => [row['table_name'], row['delta_version']])).toEqual(
    tables.toSorted().map((name) => [name, BigInt(deltaVersion(join(out, name)))]),
  )
})

test('statistics of each file in the published log match its rows', async () => {
  await makeLake(root, viewCaseCommits)
  await publishTo(root, out)
  using engine = await Engine.open(':memory:', { threads: 1 })
  for (const name of ['points', 'components', 'history_products', 'links', 'endpoints']) {
    const files = [...deltaFiles(join(out, name))]
    expect([name, files.length > 0]).toEqual([name, true])
    for (const [file, { stats, size }] of files) {
      expect(size).toBe(statSync(file).size)
      const told = JSON.parse(stats) as {
        numRecords: number
        nullCount: Record<string, number>
        minValues: Record<string, unknown>
        maxValues: Record<string, unknown>
      }
      const read = `read_parquet(${quoteList([file])}, hive_partitioning = false)`
      const [count] = await engine.rows(`SELECT count(*) AS n FROM ${read}`)
      expect(Number(count?.['n'])).toBe(told.numRecords)
      expect(Object.keys(told.minValues).length).toBeGreaterThan(0)
      for (const [column, nulls] of Object.entries(told.nullCount)) {
        const own = `"${column}"`
        const [row] = await engine.rows(
          `SELECT count(*) - count(${own}) AS nulls, min(${own}) AS least, max(${own}) AS most FROM ${read}`,
        )
        expect([column, Number(row?.['nulls'])]).toEqual([column, nulls])
        if (!(column in told.minValues)) continue
        const plain = (value: unknown): unknown =>
          typeof value === 'bigint' ? Number(value) : typeof value === 'string' ? value.replace(/000Z$/, 'Z') : value
        expect([plain(row?.['least']), plain(row?.['most'])]).toEqual([told.minValues[column], told.maxValues[column]])
      }
    }
  }
})
