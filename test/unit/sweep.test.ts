import { mkdirSync, readdirSync } from 'node:fs'
import { expect } from 'vitest'
import { commit } from '../../src/lake/ledger/commit.ts'
import { Ledger } from '../../src/lake/ledger/ledger.ts'
import { sweep } from '../../src/lake/ledger/spool-sweep.ts'
import { inLake, instantName, places } from '../../src/lake/store/layout.ts'
import { commitDeps, draftOf } from '../helpers/lakes/drafts.ts'
import { test } from '../helpers/lake-test.ts'

test('swept files can be put back for a week, and folders of other names are never removed', async ({ root }) => {
  const now = Date.UTC(2026, 0, 20, 12) * 1000
  const deps = commitDeps({ nowMicros: () => now })
  using ledger = await Ledger.open(root)
  await commit(ledger, draftOf(root, 0), deps)
  const hour = 3_600_000_000
  const named = (hours: number): string => instantName(now - hours * hour)
  const kept = [named(1), named(167), named(168), 'mine']
  for (const name of [...kept, instantName(now - 168 * hour - 1000), named(200)])
    mkdirSync(inLake(root, `${places.swept}/${name}/points`), { recursive: true })
  expect(await sweep(ledger, deps)).toEqual([])
  expect(readdirSync(inLake(root, places.swept)).toSorted()).toEqual(kept.toSorted())
})
