import { expect } from 'vitest'
import { sha256File } from '../../src/lake/ledger/commit.ts'
import { liveFiles } from '../../src/lake/ledger/index-queries.ts'
import { listJournal } from '../../src/lake/ledger/journal.ts'
import { inLake } from '../../src/lake/store/layout.ts'
import { mergeSmallFiles } from '../../src/maintenance/upkeep/merge-jobs.ts'
import { vacuum } from '../../src/maintenance/upkeep/vacuum.ts'
import { Ledger } from '../../src/lake/ledger/ledger.ts'
import { pull } from '../../src/maintenance/publish/lake.ts'
import { metrics, rewriteDeps, topUp } from './lakes/top-ups.ts'
import { catalogue } from './sandbox-client.ts'
import { webTo } from './s3.ts'

type PullDeps = Parameters<typeof pull>[1]

/** The world of a pull; anything may be replaced. */
export function pullDeps(changes: Partial<PullDeps> = {}): PullDeps {
  return { ...rewriteDeps(), web: webTo('http://127.0.0.1:9'), ...changes }
}

/** Mirrors a source into a folder. */
export async function pulled(
  root: string,
  source: string,
  changes: Partial<PullDeps> = {},
  more: Partial<Parameters<typeof pull>[0]> = {},
): ReturnType<typeof pull> {
  return await pull({ root, source, catalogue, thorough: false, ...more }, pullDeps(changes))
}

/** Adds commits to a lake, each of ten days of one metric; `from` counts them. */
export async function grow(root: string, from: number, commits: number): Promise<void> {
  using ledger = await Ledger.open(root)
  const deps = rewriteDeps()
  for (let n = from; n < from + commits; n++)
    await topUp(ledger, deps, { metric: metrics[n % 2 === 0 ? 0 : 1], since: n * 10, days: 10 })
}

/** Merges the lake's files; what they were made of stays. */
export async function merge(root: string): Promise<void> {
  using ledger = await Ledger.open(root)
  await mergeSmallFiles(ledger, rewriteDeps())
}

/** Merges the lake's files and lets vacuum take what they were made of, and what of the journal can be folded. */
export async function mergeAndVacuum(root: string): Promise<readonly string[]> {
  const deps = rewriteDeps()
  deps.clock.now += 1000
  await merge(root)
  const { paths } = await vacuum({ root, keepSeconds: 0, really: true }, { ...deps, buildViews: async () => undefined })
  return paths
}

/** The newest version that stands in a folder, every file of which is there byte for byte; 0 for none yet. */
export async function wholeVersion(root: string): Promise<number> {
  const { entries, checkpoints } = await listJournal(root)
  if (entries.length + checkpoints.length === 0) return 0
  using ledger = await Ledger.inMemory(root)
  for (const { path, sha256 } of liveFiles(ledger))
    expect([path, await sha256File(inLake(root, path))]).toEqual([path, sha256])
  expect(ledger.head().version).toBe(Math.max(entries.at(-1) ?? 0, checkpoints.at(-1) ?? 0))
  return ledger.head().version
}
