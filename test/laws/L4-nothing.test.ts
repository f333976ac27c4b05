// @module-tag alone
import type * as promises from 'node:fs/promises'
import { StatementSync } from 'node:sqlite'
import { expect, test, vi } from 'vitest'
import { commit } from '../../src/lake/ledger/commit.ts'
import { Ledger } from '../../src/lake/ledger/ledger.ts'
import { seriesId } from '../../src/catalog/series.ts'
import { fetchOnce } from '../helpers/fetching.ts'
import { commitDeps, stage } from '../helpers/lakes/drafts.ts'
import { inFolder } from '../helpers/folders.ts'
import { catalogue } from '../helpers/sandbox-client.ts'

const work = vi.hoisted(() => ({ statements: 0, files: 0 }))

vi.mock('node:fs/promises', async (original) => {
  const real = await original<typeof promises>()
  // Cast: the counting function passes on all arguments of every overload.
  const counting = (name: 'readFile' | 'open') =>
    (async (...args: unknown[]) => {
      work.files++
      return await (real[name] as (...all: unknown[]) => Promise<unknown>)(...args)
    }) as never
  return { ...real, readFile: counting('readFile'), open: counting('open') }
})

// Casts: one counting function stands in for four methods of different types.
for (const name of ['run', 'get', 'all', 'iterate'] as const) {
  const own = StatementSync.prototype[name] as (...args: unknown[]) => unknown
  StatementSync.prototype[name] = function counted(this: StatementSync, ...args: unknown[]) {
    work.statements++
    return own.apply(this, args)
  } as never
}

const day = 86_400
const now = Date.UTC(2026, 2, 4, 12) / 1000
const since = now - (now % day) - 30 * day
const metric = 'supply/current_pit'
const place = { interval: '24h', currency: 'native', exchange: null, network: null, params: {} } as const

/** A lake of so many series and versions in which all is covered, and its metadata were read just now. */
async function makeCovered(root: string, series: number, versions: number): Promise<string[]> {
  const assets = Array.from({ length: series }, (_, n) => `A${n}`)
  const own = { job: 'fetch', run: 'r', provider: { metrics: 'http://127.0.0.1:9', synthetic: false } } as const
  using ledger = await Ledger.open(root)
  const deps = commitDeps({ nowMicros: () => now * 1_000_000 })
  const rows = assets.map((asset) => ({
    id: seriesId({ metric, asset, ...place }),
    metric,
    asset,
    ...place,
    settled: '24h' as const,
  }))
  const covered = {
    since,
    until: now - (now % day),
    state: 'covered',
    reason: null,
    asked_at: now,
    request: null,
  } as const
  await commit(
    ledger,
    {
      ...own,
      add: [stage(root, 'first', 'content')],
      series: rows,
      progress: rows.map(({ id }) => ({ series: id, points: 30, first_t: since, last_t: now - 2 * day })),
      coverage: rows.map(({ id }) => ({ series: id, ...covered })),
      passing: { [`metadata/${metric}`]: 'read' },
    },
    deps,
  )
  for (let n = 1; n < versions; n++) await commit(ledger, { ...own, state: { turn: n } }, deps)
  return assets
}

/** What a fetch that finds nothing to do costs on a lake of so many series and versions. */
async function costOf(series: number, versions: number): Promise<{ statements: number; files: number }> {
  let cost = { statements: 0, files: 0 }
  await inFolder(async (root) => {
    const assets = await makeCovered(root, series, versions)
    const at = { root, url: 'http://127.0.0.1:9', now: () => now }
    Object.assign(work, { statements: 0, files: 0 })
    const done = await fetchOnce(at, { assets, paths: [metric], since }, { input: { catalogue } })
    cost = { ...work }
    expect(done).toMatchObject({ requests: 0, version: versions, stopped_by: null })
  })
  return cost
}

test('a run that finds nothing to do costs the same in a small lake and in a large one', async () => {
  const small = await costOf(3, 2)
  const large = await costOf(600, 60)
  expect(small.statements).toBeGreaterThan(0)
  expect(small.statements).toBeLessThan(150)
  expect(large.statements).toBe(small.statements)
  expect(large.files).toBe(small.files)
  expect(small.files).toBeLessThan(12)
})
