import { describe, expect } from 'vitest'
import { sha256File } from '../../src/lake/ledger/commit.ts'
import { loadCoverage, storedSeries, liveFiles } from '../../src/lake/ledger/index-queries.ts'
import { inLake } from '../../src/lake/store/layout.ts'
import { Ledger } from '../../src/lake/ledger/ledger.ts'
import { findOrphans, sweep } from '../../src/lake/ledger/spool-sweep.ts'
import { commitDeps, coverageRow, dump, seriesRow } from '../helpers/lakes/drafts.ts'
import { test as it } from '../helpers/lake-test.ts'
import { mortal } from '../helpers/mortal-steps.ts'

const day = 86_400

/** When the committer dies: before a step of the disk or the ledger, or so many milliseconds after it began to work. */
interface Death {
  readonly step?: number
  readonly ms?: number
}

/** Runs the committer to its goal or its death. */
const run = async (root: string, name: string, goal: number, api: string, { step, ms }: Death = {}) =>
  await mortal('committer', [root, name, String(goal), api], step, ms)

/** What a lake must hold after the first `count` steps of the committer, however it came there. */
function expected(count: number): { points: number; coverage: unknown } {
  const coverage = new Map<string, unknown[]>()
  for (let n = 0; n < count; n++) {
    const row = coverageRow(n % 5, n * day, (n + 1) * day, { asked_at: 1000 + n })
    coverage.set(row.series, [...(coverage.get(row.series) ?? []), row])
  }
  return { points: count, coverage }
}

const chance = (below: number): number => Math.floor(Math.random() * below)

async function check(root: string): Promise<number> {
  using ledger = await Ledger.open(root)
  const { version } = ledger.head()
  const files = liveFiles(ledger)
  expect(
    files
      .map((file) => file.path.match(/f-r-(\d+)/)?.[1])
      .map(Number)
      .toSorted((a, b) => a - b),
  ).toEqual(Array.from({ length: version }, (_, n) => n))
  for (const file of files) expect(await sha256File(inLake(root, file.path))).toBe(file.sha256)
  const series = storedSeries(ledger)
  const points = [...series.values()].reduce((sum, row) => sum + row.points, 0)
  expect({ points, coverage: loadCoverage(ledger) }).toEqual(expected(version))
  const fromJournal = await Ledger.inMemory(root)
  expect(dump(ledger)).toEqual(dump(fromJournal))
  fromJournal.close()
  return version
}

describe('L3: kill -9 around commits', () => {
  it('leaves the state of some prefix of commits, and the same command goes on from there', async ({ root }) => {
    let last = 0
    for (let kill = 0; kill < 12; kill++) {
      // Each step of the first commits in turn; else inside of a step, wherever that is on this machine.
      const death = kill % 3 === 2 ? { ms: Math.random() ** 2 * 120 } : { step: 8 + 5 * kill + chance(5) }
      expect(await run(root, 'r', 100_000, 'metrics', death)).toBe(null)
      const version = await check(root)
      expect(version).toBeGreaterThanOrEqual(last)
      last = version
    }
    expect(last).toBeGreaterThan(0)
    const goal = last + 5
    expect(await run(root, 'r', goal, 'metrics')).not.toBeNull()
    expect(await check(root)).toBe(goal)
    using ledger = await Ledger.open(root)
    await sweep(ledger, commitDeps())
    expect(await findOrphans(ledger)).toEqual([])
    expect(storedSeries(ledger).get(seriesRow(0).id)?.first_t).toBe(0)
  })

  it('two committers side by side get distinct versions and lose nothing', async ({ root }) => {
    const codes = await Promise.all([run(root, 'a', 25, 'metrics'), run(root, 'b', 25, 'registry')])
    expect(codes).not.toContain(null)
    using ledger = await Ledger.open(root)
    expect(ledger.head().version).toBe(50)
    const files = liveFiles(ledger)
    expect(new Set(files.map((file) => file.added_version)).size).toBe(50)
    for (const name of ['a', 'b']) expect(files.filter((file) => file.path.includes(`f-${name}-`))).toHaveLength(25)
    using fromJournal = await Ledger.inMemory(root)
    expect(dump(ledger)).toEqual(dump(fromJournal))
  })
})
