import { expect } from 'vitest'
import { liveFiles } from '../../src/lake/ledger/index-queries.ts'
import { Ledger } from '../../src/lake/ledger/ledger.ts'
import { mergeRecentFiles } from '../../src/maintenance/upkeep/merge-recent.ts'
import { withRewriting } from '../../src/maintenance/upkeep/rewrite.ts'
import { test } from '../helpers/lake-test.ts'
import { metrics, rewriteDeps, topUps } from '../helpers/lakes/top-ups.ts'

test('a partition of a whole portion gets a file apart, one with a row less stays in the recent file', async ({
  root,
}) => {
  const deps = rewriteDeps()
  using ledger = await Ledger.open(root)
  const [one, other] = metrics
  const both = [
    { metric: one, since: 0, days: 6, assets: 1 },
    { metric: other, since: 0, days: 4, assets: 1 },
  ]
  await topUps(ledger, deps, both, 'recent')
  const placed = async (portion: number) =>
    await withRewriting(ledger, deps, `run-${portion}`, async (rewriting) => {
      const written = await mergeRecentFiles(rewriting, 0, liveFiles(ledger), portion)
      return written.map(({ metric, rows }) => [metric, rows])
    })
  expect(await placed(6)).toEqual([
    [null, 4],
    [one, 6],
  ])
  expect(await placed(7)).toEqual([[null, 10]])
})
