import { expect } from 'vitest'
import { commit } from '../../src/lake/ledger/commit.ts'
import { Ledger } from '../../src/lake/ledger/ledger.ts'
import { archiveFile } from '../../src/lake/store/layout.ts'
import { vacuum } from '../../src/maintenance/upkeep/vacuum.ts'
import { commitDeps, draftOf, stage } from '../helpers/lakes/drafts.ts'
import { test } from '../helpers/lake-test.ts'

const last = Date.UTC(2026, 0, 31, 23, 59, 59) / 1000

test('a file of old requests goes when the whole second of its last one is old enough', async ({ root }) => {
  const none = { metric: null, interval: null, min_t: 0, max_t: last }
  const file = (table: string) => {
    const path = archiveFile(table, `0000000001-${table}`)
    return stage(root, table, 'x', { ...none, table, path, label: '2026-01' })
  }
  {
    using ledger = await Ledger.open(root)
    const add = ['requests', 'runs', 'coverage'].map(file)
    await commit(ledger, { ...draftOf(root, 0), add }, commitDeps({ nowMicros: () => 1_000_000 }))
  }
  const going = async (now: number): Promise<number> => {
    const deps = commitDeps({ nowMicros: () => now }) as Parameters<typeof vacuum>[1]
    const input = { root, keepSeconds: 0, keepRequestsSeconds: 100, really: false }
    return (await vacuum(input, deps)).requests.files
  }
  const over = (last + 101) * 1_000_000
  expect([await going(over - 1), await going(over)]).toEqual([0, 2])
})
