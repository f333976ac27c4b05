// @module-tag named
import { appendFileSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { describe, expect } from 'vitest'
import { archiveRows, vacuum } from '../../src/maintenance/upkeep/vacuum.ts'
import { compact, mergeSmallFiles } from '../../src/maintenance/upkeep/merge-jobs.ts'
import { finishRun } from '../../src/maintenance/upkeep/finish.ts'
import { noteRunFacts } from '../../src/lake/ledger/commit.ts'
import { type Disk, realDisk } from '../../src/lake/store/disk.ts'
import type { CoverageRow, RequestRow } from '../../src/lake/ledger/entry.ts'
import { summary } from '../../src/lake/ledger/index-queries.ts'
import { requestTotals } from '../../src/lake/ledger/run-queries.ts'
import { Ledger } from '../../src/lake/ledger/ledger.ts'
import { appendFacts } from '../../src/lake/ledger/run-facts.ts'
import { buildViews } from '../../src/query/views/build.ts'
import { openQuery } from '../../src/query/lake.ts'
import { dump } from '../helpers/lakes/drafts.ts'
import { inFolder } from '../helpers/folders.ts'
import { test } from '../helpers/lake-test.ts'
import { day, metrics, rewriteDeps, seriesId, start, topUps } from '../helpers/lakes/top-ups.ts'
import { catalogue } from '../helpers/sandbox-client.ts'

/** Forces nothing to the disk: a year of runs would wait for it. */
const quick: Disk = {
  ...realDisk,
  sync: async () => undefined,
  syncFolder: async () => undefined,
  write: async (path, text) => writeFileSync(path, text),
  append: async (path, text) => appendFileSync(path, text),
}

interface World {
  readonly root: string
  readonly ledger: Ledger
  readonly deps: ReturnType<typeof rewriteDeps>
}

/** Bytes of all files of a folder, by the first part of their paths. */
function sizesOf(root: string): Record<string, number> {
  const sizes: Record<string, number> = {}
  for (const name of readdirSync(root, { recursive: true, encoding: 'utf8' })) {
    const facts = statSync(join(root, name))
    const top = name.split('/')[0] ?? ''
    if (facts.isFile()) sizes[top] = (sizes[top] ?? 0) + facts.size
  }
  return sizes
}

const total = (sizes: Record<string, number>): number => Object.values(sizes).reduce((sum, bytes) => sum + bytes, 0)

function requestOf(run: string, n: number, series: string | null, now: number, since: number): RequestRow {
  const about = { api: series === null ? 'registry' : 'metrics', path: `/v1/metrics/${metrics[n % 2]}` } as const
  const query = {
    a: `A${n}`,
    i: '24h',
    s: String(since),
    u: String(since + day),
    c: 'native',
    timestamp_format: 'unix',
  }
  const cost = { status: 200, outcome: 'body', points: 1, bytes: 90 + n, credits: 1, attempts: 1 }
  const asked_at = now * 1_000_000 + n * 1237
  return {
    id: `${run}-${n}`,
    run,
    ...about,
    query,
    series,
    since,
    until: since + day,
    ...cost,
    asked_at,
    ...(n % 2 === 0 && { provider_date: now - n }),
    seconds: 0.1,
    detail: null,
  }
}

/** The run of one hour as its file tells it: it begins, asks the registry's feed, ends. */
async function poll({ root, ledger, deps }: World, n: number): Promise<void> {
  const now = deps.clock.now
  const run = `${stamp(now)}-${n}`
  const after = ledger.head().version
  const began = { id: run, job: 'registry', command: 'pitlake registry sync', started_at: now * 1_000_000 }
  const ended = { id: run, ended_at: now * 1_000_000 + 3_000_000, exit_code: 0, stopped_by: null }
  const plan = { requests: 1, credits: 1 }
  await appendFacts(quick, root, run, [
    { after, run: { ...began, plan } },
    { after, requests: [requestOf(run, 0, null, now, now)], soft: { polled: { at: now * 1_000_000, value: n } } },
    { after, run: { ...ended, actual: plan } },
  ])
  const at = new Date(now * 1000).toISOString()
  appendFileSync(join(root, 'runs', `${run}.log`), `${JSON.stringify({ at, event: 'planned', requests: 1 })}\n`)
}

const stamp = (now: number): string => new Date(now * 1000).toISOString().replaceAll(/[-:.]/g, '').toLowerCase()

/** The run at midnight: a point and a request of each series. */
async function bring({ ledger, deps }: World, assets: number, days: number, every = 1): Promise<void> {
  const now = deps.clock.now
  const run = `${stamp(now)}-fetch`
  await noteRunFacts(ledger, { id: run, job: 'fetch', command: 'pitlake fetch', started_at: now * 1_000_000 }, quick)
  const numbers = Array.from({ length: assets }, (_, n) => n)
  const since = start + days * day
  const requests = numbers.map((n) => requestOf(run, n, seriesId(metrics[0], n), now, since))
  const coverage = numbers.map((n): CoverageRow => {
    const about = { state: 'covered', reason: null, asked_at: now, request: `${run}-${n}` } as const
    return { series: seriesId(metrics[0], n), since, until: since + every * day, ...about }
  })
  await topUps(ledger, deps, [
    { metric: metrics[0], since: days, days: every, assets, more: { run, requests, coverage } },
  ])
  await mergeSmallFiles(ledger, deps)
  await noteRunFacts(ledger, { id: run, ended_at: now * 1_000_000 + 9_000_000, exit_code: 0, stopped_by: null }, quick)
}

async function views({ ledger, deps }: World): Promise<void> {
  await buildViews(ledger, { catalogue, deps })
}

async function weekly(world: World): Promise<void> {
  const { root, deps } = world
  const build = async (): Promise<void> => await views(world)
  await vacuum({ root, keepSeconds: 7 * day, really: true }, { ...deps, buildViews: build })
  await world.ledger.catchUp()
}

/** What the ledger's views answer, whatever their rows stand in. */
async function told(root: string) {
  using session = await openQuery(root)
  const rows: string[] = []
  for (const view of ['requests', 'coverage', 'runs', 'versions']) {
    const [row] = await session.rows(
      `SELECT '${view} ' || count(*) || ' ' || CAST(sum(hash(v)) AS VARCHAR) AS told FROM ${view} AS v`,
    )
    rows.push(row?.['told'] as string)
  }
  const [cost] = await session.rows('SELECT count(*) AS n, sum(credits) AS c FROM requests')
  // Each second request carried a Date: it goes into files with its row.
  const [dates] = await session.rows(
    `SELECT count(*) AS n FROM requests WHERE api = 'metrics' AND (provider_date IS NULL) = (try_cast(split_part(id, '-', -1) AS INTEGER) % 2 = 0)`,
  )
  expect(dates?.['n']).toBe(0n)
  return { requests: Number(cost?.['n']), credits: Number(cost?.['c']), rows }
}

interface Pace {
  readonly days: number
  readonly assets: number
  /** Days of history that the lake begins with. */
  readonly history: number
  /** Days from one fetch to the next. */
  readonly every?: number
  /** How often a day the registry is polled. */
  readonly polls: number
}

async function live(world: World, { days, assets, history, every = 1, polls }: Pace): Promise<void> {
  const { deps } = world
  deps.clock.now = start + history * day + 1200
  await topUps(world.ledger, deps, [{ metric: metrics[0], since: 0, days: history, assets }])
  for (let n = 0; n < days; n++) {
    deps.clock.now = start + (history + n + 1) * day + 1200
    if (n % every === 0) await bring(world, assets, history + n, every)
    for (let h = 1; h <= polls; h++) {
      deps.clock.now += Math.floor(day / (polls + 1))
      await poll(world, h)
    }
    if (n % 28 === 27) await weekly(world)
  }
}

describe('L6: growth', () => {
  test('after a year of hourly runs a lake without its views takes at most one and a half times what is live, and is made anew quickly', async () => {
    const days = 365
    await inFolder(async (root) => {
      const deps = rewriteDeps({ disk: quick })
      const world: World = { root, ledger: await Ledger.open(root), deps }
      // Each third hour of the year, and as much less of what is live.
      const polls = 7
      await live(world, { days, assets: 200, history: 800, every: 14, polls })
      // The last day in full: each run makes the views anew.
      for (let h = 0; h < 8; h++) {
        deps.clock.now += 3600
        await poll(world, h)
        await world.ledger.catchUp()
        await views(world)
      }
      const { bytes } = summary(world.ledger)
      const asked = Math.ceil(days / 14) * 200 + days * polls + 8
      expect(requestTotals(world.ledger, 0).total).toBe(asked)
      expect((await told(root)).requests).toBe(asked)
      world.ledger.close()
      // Views grow with the program, not with the years.
      const { 'lake.duckdb': _database, 'lake.sql': _script, ...sizes } = sizesOf(root)
      expect(total(sizes)).toBeLessThanOrEqual(1.5 * bytes)
      // What hourly runs leave does not grow with the years: rows at hand are those of days.
      using rebuilt = await Ledger.rebuild(root)
      expect(rebuilt.rowsOf('requests')[Symbol.iterator]().next().done).toBe(false)
      expect([...rebuilt.rowsOf('requests')].length).toBeLessThan(700)
    })
  })

  test('rows that went into files answer as before, also when merged, and when the ledger is made anew', async ({
    root,
  }) => {
    const deps = rewriteDeps({ disk: quick })
    const world: World = { root, ledger: await Ledger.open(root), deps }
    deps.clock.now = start + 20 * day + 1200
    const { ledger } = world
    for (let n = 0; n < 4; n++) {
      deps.clock.now = start + (20 + n) * day + 1200
      await bring(world, 60, 20 + n)
      for (let h = 1; h < 5; h++) await poll(world, n * 24 + h)
    }
    await ledger.catchUp()
    await views(world)
    const before = await told(root)
    const held = [...ledger.rowsOf('requests')].length
    deps.clock.now += 40 * day
    await archiveRows(ledger, deps, 1)
    await views(world)
    const after = await told(root)
    // One version more, and nothing else.
    expect(after.rows.slice(0, 3)).toEqual(before.rows.slice(0, 3))
    expect([...ledger.rowsOf('requests')].length).toBe(60)
    expect(held).toBe(4 * 64)
    expect(requestTotals(ledger, 0)).toMatchObject({ total: before.requests, credits: before.credits })
    deps.clock.now += 3 * day
    await bring(world, 60, 24)
    deps.clock.now += 3 * day
    await archiveRows(ledger, deps, 1)
    await compact(root, deps)
    await ledger.catchUp()
    await views(world)
    const merged = await told(root)
    expect(merged.requests).toBe(before.requests + 60)
    using rebuilt = await Ledger.inMemory(root)
    expect(dump(rebuilt)).toEqual(dump(ledger))
    ledger.close()
  })

  test('requests, runs and logs go when they are older than they are to be kept', async ({ root }) => {
    const deps = rewriteDeps({ disk: quick })
    const world: World = { root, ledger: await Ledger.open(root), deps }
    await live(world, { days: 70, assets: 20, history: 10, polls: 3 })
    await weekly(world)
    const all = await told(root)
    const keep = async (days: number): Promise<void> => {
      const build = async (): Promise<void> => await views(world)
      await vacuum(
        { root, keepSeconds: 0, keepRequestsSeconds: days * day, really: true },
        { ...deps, buildViews: build },
      )
      await world.ledger.catchUp()
    }
    await keep(400)
    expect((await told(root)).requests).toBe(all.requests)
    const files = readdirSync(join(root, 'archive', 'requests')).length
    await keep(30)
    const young = await told(root)
    // Whole months go: what is left is at least what was to be kept, and at most a month more.
    expect(young.requests).toBeGreaterThanOrEqual(30 * 23)
    expect(young.requests).toBeLessThanOrEqual(62 * 23 + 20)
    const logs = readdirSync(join(root, 'runs')).filter((name) => name.includes('.log'))
    // Those of older days stand in one file each; a line a run.
    const lines = logs.flatMap((name) =>
      (name.endsWith('.gz')
        ? gunzipSync(readFileSync(join(root, 'runs', name)))
        : readFileSync(join(root, 'runs', name))
      )
        .toString()
        .trim()
        .split('\n'),
    )
    expect(lines).toHaveLength(30 * 3)
    expect(logs.length).toBeLessThan(lines.length)
    deps.clock.now += day
    await keep(30)
    expect(readdirSync(join(root, 'archive', 'requests')).length).toBeLessThan(files)
    world.ledger.close()
  })

  test('a run that asks nothing leaves at most 4 kB', async ({ root }) => {
    const deps = rewriteDeps({ disk: quick })
    const world: World = { root, ledger: await Ledger.open(root), deps }
    await live(world, { days: 3, assets: 50, history: 10, polls: 23 })
    await weekly(world)
    world.ledger.close()
    const before = total(sizesOf(root))
    for (let n = 0; n < 40; n++) {
      deps.clock.now += 3600
      using ledger = await Ledger.open(root)
      const id = `${stamp(deps.clock.now)}-idle`
      const facts = {
        id,
        job: 'fetch',
        command: 'pitlake fetch',
        started_at: deps.clock.now * 1e6,
        plan: { requests: 0 },
      }
      await noteRunFacts(ledger, facts, quick)
      await noteRunFacts(
        ledger,
        { id, ended_at: deps.clock.now * 1e6 + 1, exit_code: 0, actual: { requests: 0 } },
        quick,
      )
      await finishRun({ ledger, run: id, commits: 0, requests: 0 }, { catalogue, deps, note: () => undefined })
    }
    expect((total(sizesOf(root)) - before) / 40).toBeLessThanOrEqual(4096)
  })
})
