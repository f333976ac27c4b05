import { cpSync, readFileSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, expect, test } from 'vitest'
import { checkContents } from '../../src/maintenance/upkeep/verify.ts'
import { Ledger } from '../../src/lake/ledger/ledger.ts'
import { openQuery } from '../../src/query/lake.ts'
import { moveScript } from '../../src/query/moved-script.ts'
import { makeLake } from '../helpers/lakes/make-lake.ts'
import { makeViews } from '../helpers/views.ts'
import type { LakeCommit, PointRow } from '../helpers/lakes/lake-recipe.ts'
import { lateMetric, thirtyProducts } from '../helpers/lakes/late-days-and-products.ts'
import { scratch } from '../helpers/scratch.ts'

const home = scratch('folders')

const point = (metric: string, asset: string, day: number): PointRow => ({
  metric,
  asset,
  interval: '24h',
  t: `2024-01-${String(day).padStart(2, '0')}`,
  available_at: `2024-01-${String(day + 1).padStart(2, '0')}T00:10:00Z`,
  v: day + (asset === 'BTC' ? 100 : 200),
})
const all = (days: readonly number[]): PointRow[] =>
  [lateMetric, 'm/Other x'].flatMap((metric) =>
    ['BTC', 'ETH'].flatMap((asset) => days.map((day) => point(metric, asset, day))),
  )
const steps: readonly LakeCommit[] = [
  { at: '2024-12-01T00:00:00', points: all([1, 2, 3]) },
  { at: '2024-12-02T00:00:00', tables: thirtyProducts(['BTC']) },
  { at: '2024-12-03T00:00:00', points: all([4, 5]) },
]

const queries = [
  'FROM points ORDER BY ALL',
  `SELECT count(*) AS n FROM points WHERE metric = 'm/Other x' AND "interval" = '24h' AND asset = 'ETH'`,
  `WITH d AS (SELECT 'BTC' AS asset, ts FROM calendar('2024-01-02', '2024-01-06', '6h')) SELECT ts, t, v FROM pit_join('d', '${lateMetric}', '24h') ORDER BY ALL`,
  `WITH d AS (SELECT 'ETH' AS asset, ts FROM calendar('2024-01-02', '2024-01-06', '6h')) SELECT ts, metric, t, v FROM pit_long('d', ['${lateMetric}', 'm/Other x'], '24h') ORDER BY ALL`,
  `SELECT * FROM resample('${lateMetric}', '24h', '1w') ORDER BY ALL`,
  'FROM snapshots.products ORDER BY ALL',
  'FROM history.products ORDER BY ALL',
  'FROM universe ORDER BY ALL',
  'FROM metric_assets',
]

async function answers(folder: string): Promise<unknown[]> {
  const root = join(home, folder)
  await makeLake(root, steps)
  await makeViews(root)
  using engine = await openQuery(root)
  using ledger = await Ledger.openToRead(root)
  const told: unknown[] = []
  for (const sql of queries) told.push(await engine.rows(sql))
  const { series, points } = await checkContents(ledger, new Set())
  return [...told, { series, points }]
}

let plain: unknown[] = []
beforeAll(async () => (plain = await answers('plain/lake')))

const oddFolders = [
  'asset=ETH/metric=foo/lake',
  'interval=1h/currency=x/snapshot_date=2020-01-01/lake',
  'points/metric=m%2FOther x/interval=1h/lake',
  "a [1] b*c/it's [x",
]
test.each(oddFolders)('folders above a lake mean nothing: %s', async (folder) =>
  expect(await answers(folder)).toEqual(plain),
)

test.each(['plain/lake', ...oddFolders])('each path in the views of %s moves with the lake', (folder) => {
  const root = join(home, folder)
  const script = readFileSync(join(root, 'lake.sql'), 'utf8')
  const moved = moveScript(script, root, '/elsewhere')
  expect(moved).not.toContain(home)
  expect(moved.split('/elsewhere').length).toBe(script.split(home).length)
})

test.each([
  ["a [1] b*c/it's [x", 'copies/plain'],
  ['plain/lake', "copies/it's [2] l*ke"],
])('the views of %s answer alike from the copy %s', async (from, to) => {
  const [built, copy] = [join(home, from), join(home, to)]
  cpSync(built, copy, { recursive: true })
  const script = moveScript(readFileSync(join(copy, 'lake.sql'), 'utf8'), built, copy)
  renameSync(built, `${built} away`)
  try {
    using engine = await openQuery(copy, { script })
    for (const [n, sql] of queries.entries()) expect(await engine.rows(sql), sql).toEqual(plain[n])
  } finally {
    renameSync(`${built} away`, built)
  }
})

test('queries over folders with odd names have rows to compare', () => {
  expect(plain.slice(0, queries.length).map((rows) => (rows as readonly unknown[]).length > 0)).toEqual(
    queries.map((sql) => !sql.includes('snapshots.')),
  )
})

test('a lake that was copied, or moved, says so in words, where its folder was and what to type', async () => {
  const here = join(home, "a [1] b*c/it's [x")
  const there = join(home, 'copied')
  const gone = join(home, 'moved')
  const refusal = { name: 'LakeError', kind: 'usage', message: expect.stringContaining(`views made for ${here};`) }
  cpSync(here, there, { recursive: true })
  await expect(openQuery(there)).rejects.toMatchObject(refusal)
  renameSync(here, gone)
  await expect(openQuery(gone)).rejects.toMatchObject(refusal)
  await expect(openQuery(gone)).rejects.toThrow(/the lake was moved or copied: run `pitlake views`$/)
  await makeViews(gone)
  using engine = await openQuery(gone)
  expect(await engine.rows('FROM points ORDER BY ALL')).toEqual(plain[0])
})
