import { expect } from 'vitest'
import { commit } from '../../src/lake/ledger/commit.ts'
import { loadCoverage } from '../../src/lake/ledger/index-queries.ts'
import { alarmReason, refusalWords } from '../../src/lake/ledger/refusals.ts'
import { acceptViolations, listViolations } from '../../src/lake/ledger/violations.ts'
import { commitDeps, coverageRow, seriesRow } from '../helpers/lakes/drafts.ts'
import { test } from '../helpers/lake-test.ts'
import { rewriteDeps } from '../helpers/lakes/top-ups.ts'

const day = 86_400

test('only the accepted one of several refused series is withdrawn', async ({ ledger }) => {
  const reason = alarmReason(day, refusalWords('forbidden', 'not in the plan'))
  const series = [0, 1, 2].map((n) => seriesRow(n))
  await commit(
    ledger,
    {
      job: 'fetch',
      run: 'r',
      provider: { metrics: 'sandbox:1', synthetic: true },
      series,
      coverage: series.flatMap((_, n) => [
        coverageRow(n, 0, day),
        coverageRow(n, day, 2 * day, { state: 'failed', reason }),
      ]),
    },
    commitDeps(),
  )
  const all = listViolations(ledger, { paths: null, assets: null })
  expect(all.map(({ kind, series: of, t }) => [kind, of, t])).toEqual(series.map(({ id }) => ['refused', id, day]))
  const id = all.find((one) => one.series === series[1]?.id)?.id ?? ''
  const done = await acceptViolations(ledger, { ids: [id], why: 'left the plan' }, rewriteDeps())
  expect(done).toMatchObject({ made: true, acknowledged: [id], known: [] })
  const states = [...loadCoverage(ledger).values()].map((rows) => rows.map(({ state }) => state))
  expect(states).toEqual([
    ['covered', 'failed'],
    ['covered', 'unsupported'],
    ['covered', 'failed'],
  ])
  const after = listViolations(ledger, { paths: null, assets: null })
  expect(after.map(({ acknowledged_at, why }) => [acknowledged_at !== null, why])).toEqual([
    [false, null],
    [true, 'left the plan'],
    [false, null],
  ])
})
