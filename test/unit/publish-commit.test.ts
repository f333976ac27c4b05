import { afterAll, beforeAll, expect, test } from 'vitest'
import { actionsOf, noTable, type TableState } from '../../src/maintenance/publish/log.ts'
import { lastMark, requireFit } from '../../src/maintenance/publish/commit.ts'
import type { Destination } from '../../src/maintenance/publish/destination.ts'
import { Engine } from '../../src/lake/store/engine.ts'

let engine: Engine
beforeAll(async () => (engine = await Engine.open(':memory:', { threads: 1 })))
afterAll(() => engine.close())

const day = 86_400_000
const now = Date.UTC(2026, 0, 20)
const digest = (version: number): string => `${version}`.repeat(64)
const at = { lake: 'l', version: 5, at: 5000, digest: digest(5), program: 'p', now: () => now } satisfies Parameters<
  typeof requireFit
>[3]
const told = (version: number, of = digest(version)): TableState => ({
  ...noTable,
  version: 0,
  txns: new Map([
    ['pitlake.version', version],
    ['pitlake.committed_at', version * 1000],
    ['pitlake.digest', Number.parseInt(of.slice(0, 12), 16)],
  ]),
})

/** What a publish finds in a lake whose commits were made by these jobs. */
async function fits(jobs: readonly string[], states: Readonly<Record<string, TableState>>): Promise<number> {
  const rows = jobs.map((job, n) => `(${n + 1}, '${digest(n + 1)}', '${job}')`).join(', ')
  await engine.run(`CREATE OR REPLACE VIEW versions AS FROM (VALUES ${rows}) AS v(version, digest, job)`)
  return await requireFit(engine, { uri: '/there' } as Destination, new Map(Object.entries(states)), at)
}

test('files published before the last job that may change rows are written again, whatever the job', async () => {
  expect(await fits(['fetch', 'sync', 'compact', 'vacuum', 'accept'], {})).toBe(0)
  for (const job of ['doctor', 'adopt']) {
    expect(await fits(['fetch', job, 'fetch'], { points: told(3) })).toBe(2)
    expect(await fits([job, 'fetch', job, 'fetch', 'fetch'], { points: told(1), runs: noTable })).toBe(3)
  }
})

test('tables of another course of the history, or of a lake ahead of this one, are refused', async () => {
  expect(lastMark(told(3))).toEqual({ version: 3, at: 3000 })
  expect(lastMark(noTable)).toBeUndefined()
  const jobs = ['fetch', 'fetch', 'fetch', 'fetch', 'fetch']
  await expect(fits(jobs, { points: told(5), runs: told(4, digest(9)) })).rejects.toThrow(
    'table /there/runs: expected a version of this lake, which is at 5, got version 4 of another course of its history',
  )
  await expect(fits(jobs, { points: told(6) })).rejects.toThrow('got version 6 of a lake that is ahead of it')
})

test('a checkpoint forgets what left its table 400 days ago, and nothing younger', () => {
  const removed = [399, 400, 401].map((days) => {
    const gone = { path: `${days}`, deletionTimestamp: now - days * day, dataChange: true }
    return [gone.path, gone] as const
  })
  const kept = actionsOf({ ...noTable, removed: new Map(removed) }, now).flatMap(({ remove }) => remove?.path ?? [])
  expect(kept).toEqual(['399'])
})
