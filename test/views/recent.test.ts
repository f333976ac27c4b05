// @module-tag full
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect } from 'vitest'
import { compact, mergeSmallFiles } from '../../src/maintenance/upkeep/merge-jobs.ts'
import { redate } from '../../src/maintenance/upkeep/redate.ts'
import { replay, stamp } from '../../src/trust/results/stamp.ts'
import { vacuum } from '../../src/maintenance/upkeep/vacuum.ts'
import { Engine, quote } from '../../src/lake/store/engine.ts'
import { type StoredFile, liveFiles } from '../../src/lake/ledger/index-queries.ts'
import { inLake } from '../../src/lake/store/layout.ts'
import { Ledger } from '../../src/lake/ledger/ledger.ts'
import { buildViews } from '../../src/query/views/build.ts'
import { codecsOf } from '../helpers/codecs.ts'
import { inFolder } from '../helpers/folders.ts'
import { test } from '../helpers/lake-test.ts'
import { withLag } from '../helpers/lags.ts'
import { day, type Level, metrics, rewriteDeps, start, topUps } from '../helpers/lakes/top-ups.ts'
import { catalogue } from '../helpers/sandbox-client.ts'
import { makeViews } from '../helpers/views.ts'
import { writing } from '../helpers/ledgers.ts'

const endpoints = [...metrics, 'addresses/active_count_pit']
type Deps = ReturnType<typeof rewriteDeps>

/**
 * A history of each endpoint in its own files and three top-ups in the given level, with late points, -0.0, null and
 * objects.
 */
async function grow(root: string, deps: Deps, level: Level): Promise<void> {
  using ledger = await Ledger.open(root)
  const skip = [7]
  // The last endpoint is known from its top-ups only.
  const whole = endpoints.slice(0, 2).map((metric) => ({ metric, since: 0, days: 40, skip }))
  await topUps(ledger, deps, whole)
  for (let n = 0; n < 3; n++) {
    deps.clock.now += day
    const late = (metric: string): number[] => (n === 0 && metric !== endpoints[2] ? skip : [])
    const some = endpoints.map((metric) => ({ metric, since: 40 + n * 5, days: 5, late: late(metric) }))
    await topUps(ledger, deps, some, level)
  }
}

const joins = [
  `WITH d AS (SELECT 'A1' AS asset, ts FROM calendar('2024-01-20', '2024-03-01', '7h')) SELECT * FROM pit_join('d', '${metrics[1]}', '24h') ORDER BY ALL`,
  `WITH d AS (SELECT 'A0' AS asset, ts FROM calendar('2024-02-20', '2024-03-01', '7h')) SELECT * FROM pit_join('d', '${endpoints[2]}', '24h') ORDER BY ALL`,
  `WITH d AS (SELECT 'A1' AS asset, ts FROM calendar('2024-01-20', '2024-03-01', '1 day')) SELECT * FROM pit_long('d', ${JSON.stringify(endpoints).replaceAll('"', "'")}, '24h') ORDER BY ALL`,
  `WITH d AS (SELECT 'A1' AS asset, ts FROM calendar('2024-02-01', '2024-02-20', '1 day')) SELECT * FROM pit_window('d', '${metrics[0]}', '24h', 3) ORDER BY ALL`,
  `SELECT * FROM resample('${endpoints[2]}', '24h', '1w', 'sum') ORDER BY ALL`,
]
const tables = [
  'SELECT *, signbit(v) AS sign FROM points ORDER BY ALL',
  'SELECT * FROM series ORDER BY ALL',
  'SELECT metric, component, count(*)::INTEGER AS n, sum(v) AS v FROM components GROUP BY ALL ORDER BY ALL',
]

const each = 2 * tables.length + joins.length

/** How many rows a question has, and a digest of them in any order. */
const digested = (sql: string): string =>
  `SELECT count(*) AS n, sum(CAST(hash(r) AS HUGEINT)) AS digest FROM (${sql}) AS r`

/** What the views say in each state of knowledge: the rows, or of many a digest. */
async function told(root: string, observed: readonly number[], form = (sql: string) => sql): Promise<string[]> {
  await makeViews(root)
  using engine = await Engine.open(join(root, 'lake.duckdb'), { readOnly: true })
  const answers: string[] = []
  const states = [
    '',
    `SET VARIABLE as_of = make_timestamptz(${(start + 43 * day) * 1_000_000}::BIGINT)`,
    ...observed.map((at) => `SET VARIABLE observed_as_of = make_timestamptz(${at}::BIGINT)`),
  ]
  for (const state of states)
    for (const backfill of ['strict', 'rule']) {
      await engine.run(`RESET VARIABLE as_of; RESET VARIABLE observed_as_of; SET VARIABLE backfill = '${backfill}'`)
      if (state !== '') await engine.run(state)
      for (const sql of backfill === 'strict' ? [...tables, ...joins] : tables)
        answers.push(
          JSON.stringify(await engine.rows(form(sql)), (_, cell: unknown) =>
            typeof cell === 'bigint' ? String(cell) : cell,
          ),
        )
    }
  return answers
}

async function filesOf(root: string): Promise<StoredFile[]> {
  using ledger = await Ledger.open(root)
  return liveFiles(ledger, { table: 'points' })
}

const recentOf = (files: readonly StoredFile[]): StoredFile[] =>
  files.filter(({ path }) => path.startsWith('points/recent/'))

/** Lakes of the same points, in both levels and in partitions only; what the first says, and where its clock stands. */
let made: { both: string; plain: string; before: string[]; now: number }
const homes: string[] = []
beforeAll(async () => {
  const [both = '', plain = ''] = ['both', 'plain'].map((name) => mkdtempSync(join(tmpdir(), `pitlake-${name}-`)))
  homes.push(both, plain)
  const deps = rewriteDeps()
  await grow(both, deps, 'recent')
  await grow(plain, rewriteDeps(), 'own')
  made = { both, plain, before: await told(both, [middle]), now: deps.clock.now }
})
afterAll(() => {
  for (const home of homes) rmSync(home, { recursive: true, force: true })
})

/** Copies of both. */
async function twins(work: (both: string, plain: string, deps: Deps) => Promise<void>): Promise<void> {
  await inFolder(async (folder) => {
    const both = join(folder, 'both')
    const plain = join(folder, 'plain')
    cpSync(made.both, both, { recursive: true })
    cpSync(made.plain, plain, { recursive: true })
    const deps = rewriteDeps()
    deps.clock.now = made.now
    await work(both, plain, deps)
  })
}

const middle = (start + 402 * day) * 1_000_000

test('views and joins over both levels say what they say over partitions only', () =>
  twins(async (both, plain) => {
    expect(recentOf(await filesOf(both))).toHaveLength(3)
    expect(recentOf(await filesOf(plain))).toEqual([])
    const answers = made.before
    expect(answers).toEqual(await told(plain, [middle]))
    expect(answers[0]?.length).toBeGreaterThan(20_000)
    expect(answers.filter((answer) => answer === '[]').length).toBeLessThan(answers.length / 3)
  }))

test('merging, moving to partitions and redating change no answer but the dates', () =>
  twins(async (both, plain, deps) => {
    const { before } = made
    await writing(both, async (ledger) => await mergeSmallFiles(ledger, deps))
    expect(recentOf(await filesOf(both))).toHaveLength(1)
    expect(await told(both, [middle])).toEqual(before)
    deps.clock.now += day
    const now = deps.clock.now * 1_000_000
    for (const root of [both, plain])
      await redate(root, withLag(metrics[0], 7200), { ...deps, ...rewriteDeps({ nowMicros: () => now }) })
    expect(recentOf(await filesOf(both))).toEqual([])
    expect(await told(both, [middle, now + 9])).toEqual(await told(plain, [middle, now + 9]))
    const after = await told(both, [middle])
    expect(after).not.toEqual(before)
    // As observed before the new rule, everything is as it was.
    expect(after.slice(-each)).toEqual(before.slice(-each))
  }))

test('recent files stay sorted and quick to open when they are merged', async ({ root }) => {
  const deps = rewriteDeps()
  const ledger = await Ledger.open(root)
  const portions = [0, 600].map((since) => metrics.map((metric) => ({ metric, since, days: 600 })))
  for (const portion of portions) await topUps(ledger, deps, portion, 'recent')
  await mergeSmallFiles(ledger, deps)
  ledger.close()
  const [merged, ...others] = await filesOf(root)
  expect([merged?.rows, merged?.metric, others]).toEqual([4800, null, []])
  using engine = await Engine.open()
  const path = inLake(root, merged?.path ?? '')
  expect(await codecsOf(engine, path)).toEqual(['SNAPPY'])
  const rows = await engine.rows<{ place: string }>(
    `SELECT concat_ws(' ', metric, "interval", asset, epoch(t)::BIGINT) AS place FROM read_parquet(${quote(path)}) ORDER BY file_row_number`,
  )
  const places = rows.map(({ place }) => place)
  expect(places).toEqual(places.toSorted())
})

test('compact leaves one file a partition, and says what it exchanged', () =>
  twins(async (both, _, deps) => {
    const { before } = made
    const summary = await compact(both, deps)
    const files = await filesOf(both)
    expect(new Set(files.map(({ metric }) => metric))).toEqual(new Set(endpoints))
    expect(files).toHaveLength(endpoints.length)
    const rows = files.reduce((sum, file) => sum + file.rows, 0)
    expect(summary).toMatchObject({ partitions: 3, files_added: 3, files_removed: 5, rows, abandoned: [] })
    expect(await told(both, [middle])).toEqual(before)
    expect((await compact(both, deps)).files_added).toBe(0)
  }))

test('a stamped result over both levels comes again after compact and vacuum', () =>
  twins(async (both, _, deps) => {
    await inFolder(async (aside) => {
      await makeViews(both)
      const out = join(aside, 'counted.parquet')
      const run = { sleep: async () => await Promise.resolve() }
      const query = 'SELECT metric, asset, count(*) AS n, sum(v) AS v FROM points GROUP BY ALL ORDER BY ALL'
      await stamp({ root: both, catalogue, query, out, variables: {} }, run, deps)
      await compact(both, deps)
      deps.clock.now += 30 * day
      const build = async (ledger: Ledger): Promise<void> => void (await buildViews(ledger, { catalogue, deps }))
      await vacuum({ root: both, keepSeconds: 0, really: true }, { ...deps, buildViews: build })
      expect(readdirSync(join(both, 'points', 'recent'))).toHaveLength(3)
      expect(await replay(both, out, run, deps.program)).toMatchObject({ same: true, notes: [] })
    })
  }))

test.each([
  ['one bit changed', (bytes: Buffer) => bytes.with(200, (bytes[200] ?? 0) ^ 1)],
  ['torn', (bytes: Buffer) => bytes.subarray(0, 100)],
])('a recent file with %s is not merged, moved or redated', (_name, harm) =>
  inFolder(async (root) => {
    const deps = rewriteDeps()
    await grow(root, deps, 'recent')
    const files = await filesOf(root)
    const [victim] = recentOf(files)
    const path = inLake(root, victim?.path ?? '')
    writeFileSync(path, harm(readFileSync(path)))
    const done = await compact(root, deps)
    expect(done.abandoned.map(({ reason }) => reason)).toEqual([
      `${victim?.path} does not match its checksum; run pitlake verify`,
    ])
    await expect(redate(root, withLag(metrics[0], 7200), deps)).rejects.toThrow('does not match its checksum')
    expect(await filesOf(root)).toEqual(files)
  }),
)

test('a large partition moves to a file apart, the rest stays in the recent file', async ({ root }) => {
  const deps = rewriteDeps()
  using ledger = await Ledger.open(root)
  for (let n = 0; n < 2; n++) {
    deps.clock.now += day
    const [large, small] = metrics
    const wide = { metric: large, since: n * 50, days: 50, assets: 100 }
    await topUps(ledger, deps, [wide, { metric: small, since: n * 5, days: 5 }], 'recent')
  }
  const before = await told(root, [], digested)
  expect(before[0]).toMatch(/^\[\{"n":"10020","digest":"\d{9,}/)
  await mergeSmallFiles(ledger, deps)
  const held = liveFiles(ledger, { table: 'points' }).map(({ metric, rows, meta }) => [metric, rows, meta['shares']])
  const lag = metrics[1] === 'market/beta_btc_7d_pit' ? 900_000_000 : 0
  expect(held).toEqual([
    [null, 20, { [metrics[1]]: { '24h': [20, lag] } }],
    [metrics[0], 10_000, undefined],
  ])
  expect(await told(root, [], digested)).toEqual(before)
})
