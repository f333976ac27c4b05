import { rmSync } from 'node:fs'
import { expect } from 'vitest'
import { seriesId } from '../../src/catalog/series.ts'
import { commit } from '../../src/lake/ledger/commit.ts'
import { loadCoverage, storedSeries, liveFiles } from '../../src/lake/ledger/index-queries.ts'
import { Ledger } from '../../src/lake/ledger/ledger.ts'
import { inLake } from '../../src/lake/store/layout.ts'
import { forgetLost } from '../../src/maintenance/upkeep/forget.ts'
import { lostBeyond } from '../../src/maintenance/upkeep/judgement.ts'
import { commitDeps, coverageRow, stage } from '../helpers/lakes/drafts.ts'
import { inFolder } from '../helpers/folders.ts'
import { test } from '../helpers/lake-test.ts'
import { metrics, rewriteDeps, topUp } from '../helpers/lakes/top-ups.ts'
import { makeLake } from '../helpers/lakes/make-lake.ts'
import type { PointRow } from '../helpers/lakes/lake-recipe.ts'
import type { Damage } from '../../src/maintenance/upkeep/findings.ts'
import { partOf } from '../helpers/part-of.ts'

const metric = 'm/x'
const series = { metric, asset: 'A', interval: '24h', currency: 'usd', exchange: 'e', network: 'n' } as const
const start = Date.UTC(2024, 2, 1) / 1000
const day = (n: number): number => start + n * 86_400

function point(n: number, own: Partial<PointRow> = {}): PointRow {
  return { ...series, t: new Date(day(n) * 1000).toISOString(), available_at: '2024-06-01', v: n, ...own }
}

test.each([
  ['asset', { asset: 'B' }],
  ['currency', { currency: 'native' }],
  ['exchange', { exchange: 'f' }],
  ['network', { network: 'o' }],
] as const)(
  'the loss of a file is counted by the remaining points of each series, and a different %s is a different series',
  (_, other) =>
    inFolder(async (root) => {
      const id = (own: Partial<Record<'asset' | 'currency' | 'exchange' | 'network', string>>): string =>
        seriesId({ ...series, ...own, params: {} })
      const covered = (own: object) => coverageRow(0, day(0), day(6), { series: id(own), asked_at: day(200) })
      const counted = (own: object, points: number) => ({ series: id(own), points, first_t: day(0), last_t: day(5) })
      await makeLake(root, [
        {
          at: '2024-07-01',
          // What one series lacks stands in the other.
          points: [0, 1, 3, 5].map((n) => point(n)).concat([2, 4].map((n) => point(n, other))),
          coverage: [covered({}), covered(other)],
          progress: [counted({}, 6), counted(other, 6)],
        },
        { at: '2024-07-02', points: [2, 4].map((n) => point(n)).concat([0, 1, 3, 5].map((n) => point(n, other))) },
      ])
      using ledger = await Ledger.open(root)
      const file = liveFiles(ledger).at(-1)
      if (!file) throw new Error('no file')
      const damage = damageOf(file.path)
      const gone = await forgetLost(ledger, [{ file, damage }], commitDeps())
      const windows = (...days: readonly (readonly [number, number])[]) =>
        days.map(([a, b]) => ({ since: day(a), until: day(b) }))
      const two = windows([2, 3], [4, 5])
      expect(gone.series.toSorted((a, b) => a.points - b.points)).toEqual([
        { series: id({}), points: 2, windows: two },
        { series: id(other), points: 4, windows: windows([0, 2], [3, 4], [5, 6]) },
      ])
      expect(gone).toMatchObject({ files: [file.path], points: 6 })
      const left = [{}, other].map((own) => storedSeries(ledger).get(id(own))?.points)
      expect(left).toEqual([4, 2])
      const failed = (loadCoverage(ledger).get(id({})) ?? []).filter(({ state }) => state === 'failed')
      expect(failed.map(({ since, until }) => ({ since, until }))).toEqual(two)
    }),
)

/** What a look found at a file: the kind alone is written down. */
const damageOf = (path: string): Damage => partOf<Damage>({ kind: 'file_lost', severity: 'damage', path })

test('lost datings, listings and raw bodies are forgotten, lost steps of a history never', async ({ root, ledger }) => {
  const lost = ['redated', 'metric_assets', 'raw']
  const add = [...lost, 'history.issuers', 'events'].map((table, n) => stage(root, `f${n}`, table, { table }))
  await commit(ledger, { job: 'sync', run: 's', provider: { synthetic: true }, add }, commitDeps())
  const damaged = liveFiles(ledger).map((file) => ({ file, damage: damageOf(file.path) }))
  const { files } = await forgetLost(ledger, damaged, commitDeps())
  expect(files.toSorted()).toEqual(add.slice(0, lost.length).map(({ path }) => path))
  expect(liveFiles(ledger).map(({ table }) => table)).toEqual(expect.arrayContaining(['history.issuers', 'events']))
  expect(liveFiles(ledger)).toHaveLength(2)
})

test('missing files count as beyond a copy of the journal only if a later version added them', async ({
  root,
  ledger,
}) => {
  for (const since of [0, 5]) await topUp(ledger, rewriteDeps(), { metric: metrics[0], since, days: 5 })
  const [, second] = liveFiles(ledger)
  if (!second) throw new Error('no second file')
  rmSync(inLake(root, second.path))
  expect(second.added_version).toBe(2)
  expect([await lostBeyond(ledger, 2), await lostBeyond(ledger, 1)]).toEqual([
    { named: 0, paths: [] },
    { named: 1, paths: [second.path] },
  ])
})
