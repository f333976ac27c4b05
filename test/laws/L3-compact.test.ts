// @module-tag full
import { cpSync } from 'node:fs'
import { describe, expect } from 'vitest'
import { sha256File } from '../../src/lake/ledger/commit.ts'
import { filesOnDisk, liveFiles } from '../../src/lake/ledger/index-queries.ts'
import { inLake } from '../../src/lake/store/layout.ts'
import { revisableKey } from '../../src/lake/ledger/draft.ts'
import { Ledger } from '../../src/lake/ledger/ledger.ts'
import { findOrphans, sweep } from '../../src/lake/ledger/spool-sweep.ts'
import { dump } from '../helpers/lakes/drafts.ts'
import { test as it } from '../helpers/lake-test.ts'
import { answers } from '../helpers/points-at.ts'
import { everyKind, metrics, rewriteDeps, topUp, topUps } from '../helpers/lakes/top-ups.ts'
import { mortal } from '../helpers/mortal-steps.ts'

/** Every file that any reader may be told of is there, byte for byte, and the journal alone tells the same. */
async function check(root: string, expected: string): Promise<void> {
  using ledger = await Ledger.open(root)
  for (const file of liveFiles(ledger)) expect(await sha256File(inLake(root, file.path))).toBe(file.sha256)
  expect(await answers(ledger, null)).toBe(expected)
  using rebuilt = await Ledger.inMemory(root)
  expect(dump(rebuilt)).toEqual(dump(ledger))
}

describe('L3: kill -9 around merging and vacuum', () => {
  it('TIME 54: leaves the same answers at every step, and the same lake after the same command again', async ({
    root: folder,
  }) => {
    const root = `${folder}/lake`
    const ledger = await Ledger.open(root)
    const deps = rewriteDeps()
    for (let n = 0; n < 3; n++)
      for (const metric of everyKind) await topUp(ledger, deps, { metric, since: n * 30, days: 30, skip: [n * 30 + 4] })
    // A late point, and a second vintage of one that was held.
    const more = { state: { [revisableKey]: [metrics[0], everyKind[2]] } }
    await topUp(ledger, deps, { metric: metrics[0], since: 0, days: 0, late: [4, 7], more })
    const recent = (since: number) => everyKind.map((metric) => ({ metric, since, days: 3 }))
    for (const since of [90, 93]) await topUps(ledger, deps, recent(since), 'recent')
    const expected = await answers(ledger, null)
    ledger.close()
    const undisturbed = `${folder}/undisturbed`
    cpSync(root, undisturbed, { recursive: true })
    const steps = (await mortal('compactor', [undisturbed])) ?? 0
    expect(steps).toBeGreaterThan(15)
    const deaths = Array.from({ length: 4 }, (_, i) => ({
      at: 1 + Math.floor((i * (steps - 1)) / 3),
      after: undefined,
    }))
    const kills = [100].map((after) => ({ at: 0, after }))
    await inPairs([...deaths, ...kills], async ({ at, after }, n) => {
      const copy = `${folder}/copy-${n}`
      cpSync(root, copy, { recursive: true })
      const steps = await mortal('compactor', [copy], at, after)
      if (at > 0) expect(steps).toBeNull()
      await check(copy, expected)
      await mortal('compactor', [copy])
      await check(copy, expected)
      using again = await Ledger.open(copy)
      expect(liveFiles(again)).toHaveLength(everyKind.length)
      await sweep(again, deps)
      expect(await findOrphans(again)).toEqual([])
      expect(filesOnDisk(again)).toHaveLength(everyKind.length)
    })
  })
})

async function inPairs<T>(items: readonly T[], work: (item: T, n: number) => Promise<void>): Promise<void> {
  const queue = [...items.entries()]
  const worker = async (): Promise<void> => {
    for (let next = queue.shift(); next; next = queue.shift()) await work(next[1], next[0])
  }
  await Promise.all([worker(), worker()])
}
