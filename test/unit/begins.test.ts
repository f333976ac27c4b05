import { expect, test } from 'vitest'
import { beforeFirst } from '../../src/lake/ledger/coverage.ts'
import { beginsLater } from '../../src/sources/metrics/run-summary.ts'
import { historyStart } from '../../src/sources/metrics/plan.ts'
import { coverageRow } from '../helpers/lakes/drafts.ts'

const day = 86_400
const rows = (since: number, reason: string | null = beforeFirst) => [
  coverageRow(0, since, since + 10 * day, { series: 'm/x|A|24h||||', state: 'empty', reason }),
]

test('a series begins later than requested unless the request started near the beginning of all history', () => {
  const late = historyStart + 40 * day
  expect(beginsLater(rows(late))).toEqual([
    { metric: 'm/x', asset: 'A', interval: '24h', begins: '2009-02-22', asked_from: '2009-02-12' },
  ])
  expect(beginsLater([...rows(late - 1), ...rows(historyStart), ...rows(late, null), ...rows(late, 'gap')])).toEqual([])
})
