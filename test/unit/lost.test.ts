import { expect } from 'vitest'
import { commit } from '../../src/lake/ledger/commit.ts'
import { storedLosses } from '../../src/lake/ledger/lost-points.ts'
import { commitDeps, coverageRow, seriesRow, violationRow } from '../helpers/lakes/drafts.ts'
import { test } from '../helpers/lake-test.ts'

const day = 86_400
const { id } = seriesRow(0)
const differs = (offered_at: number, stored: string | null, kind = 'changed') =>
  violationRow(0, 0, { kind, stored, offered: `${kind} ${100 - offered_at}`, stored_at: 5, offered_at })

test('the latest record of a lost point counts, for its value and its clock apart', async ({ ledger }) => {
  const draft = { job: 'fetch', run: 'r', provider: { metrics: 'sandbox:1', synthetic: true } }
  const violations = [
    differs(30, '3'),
    differs(10, '1'),
    differs(40, null),
    differs(25, '77', 'computed_at_changed'),
    differs(20, '66', 'computed_at_changed'),
  ]
  const series = [seriesRow(0)]
  await commit(ledger, { ...draft, series, coverage: [coverageRow(0, 0, day)], violations }, commitDeps())
  expect(storedLosses(ledger, [id]).size).toBe(0)
  const forgotten = [{ series: id, month: '1970-01', since: 0, until: day, points: 1, digest: null }]
  await commit(ledger, { ...draft, job: 'doctor', forgotten, state: { lost: 1 } }, commitDeps())
  expect(storedLosses(ledger, [id]).get(id)?.recorded).toEqual([{ t: 0, value: '3', computed: '77', stored_at: 5 }])
})
