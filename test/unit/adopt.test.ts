import { existsSync, mkdirSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { expect } from 'vitest'
import { commit } from '../../src/lake/ledger/commit.ts'
import { violationId } from '../../src/lake/ledger/entry.ts'
import { storedSeries, storedViolations, liveFiles } from '../../src/lake/ledger/index-queries.ts'
import { Ledger } from '../../src/lake/ledger/ledger.ts'
import { type Disk, realDisk } from '../../src/lake/store/disk.ts'
import { Engine, quote } from '../../src/lake/store/engine.ts'
import { assetsFile, inLake, pointsFile, registryFile } from '../../src/lake/store/layout.ts'
import { commitLock, isFree } from '../../src/lake/store/lock.ts'
import { adoptLost, endAdoption } from '../../src/maintenance/upkeep/adopt.ts'
import { readFound, writtenAt } from '../../src/maintenance/upkeep/adopt-files.ts'
import { lose } from '../helpers/adopting.ts'
import { test } from '../helpers/lake-test.ts'
import { metrics, rewriteDeps, topUp } from '../helpers/lakes/top-ups.ts'
import { catalogue } from '../helpers/sandbox-client.ts'

test('a file without a journal is known by its place, its footer and its rows', async ({ root }) => {
  using engine = await Engine.open(':memory:', { threads: 1 })
  const write = async (path: string, footer: string): Promise<void> => {
    mkdirSync(dirname(inLake(root, path)), { recursive: true })
    await engine.run(
      `COPY (SELECT n AS a FROM range(3) r(n)) TO ${quote(inLake(root, path))} (FORMAT parquet${footer})`,
    )
  }
  const find = async (path: string, lake = 'L') => await readFound({ engine, root }, path, lake)
  const own = `, KV_METADATA {pitlake_lake: 'L', pitlake_version: '5'}`
  const events = registryFile('events', '0000000003-x', null)
  await write(events, own)
  const found = { table: 'events', metric: null, interval: null, rows: 3, digest: null, datedAt: 0 }
  expect(await find(events)).toMatchObject({ ...found, path: events, version: 5 })
  // The later of what its name and its footer say.
  const later = registryFile('events', '0000000007-x', null)
  await write(later, own)
  expect(await find(later)).toMatchObject({ version: 7 })
  expect(await find(events, 'M')).toEqual({ path: events, why: 'it is of the lake L' })
  await write(events, '')
  expect(await find(events)).toEqual({ path: events, why: 'its footer names no lake' })
  // The listing of assets never did.
  const assets = assetsFile('0000000003-x')
  await write(assets, '')
  expect(await find(assets)).toMatchObject({ table: 'metric_assets', version: 3, rows: 3 })
  await write(events, `, KV_METADATA {pitlake_lake: 'L', pitlake_digest: '7'}`)
  expect(await find(events)).toEqual({ path: events, why: 'its digest does not hold' })
  truncateSync(inLake(root, events), 60)
  expect(await find(events)).toEqual({ path: events, why: 'it cannot be read' })
  for (const path of ['registry/raw/0000000003-x.json.zst', 'other/0000000003-x.parquet'])
    expect(await find(path)).toEqual({ path, why: 'bodies as received and files of unknown tables are not taken up' })
})

test('the name of a file contains the start of its run', () => {
  const named = (name: string) => writtenAt(pointsFile('m/x', '24h', name))
  const at = Date.UTC(2026, 0, 2, 3, 4, 5, 678) * 1000
  expect(named('0000000012-20260102t030405678z-99-x')).toBe(at)
  expect(named('0000000012-20260102t030405678z-99-redate-x')).toBe(at)
  expect(named('x')).toBe(0)
})

/** Writes a file anew with a footer that names its lake and a version. */
async function nameLake(root: string, file: string, lake: string, version: number): Promise<void> {
  using engine = await Engine.open(':memory:', { threads: 1 })
  const path = quote(inLake(root, file))
  await engine.run(`CREATE TABLE held AS FROM read_parquet(${path}, hive_partitioning = false)`)
  await engine.run(
    `COPY held TO ${path} (FORMAT parquet, KV_METADATA {pitlake_lake: ${quote(lake)}, pitlake_version: '${version}'})`,
  )
}

test('an adopted lake is one version later than its files name, dated by the clock of the adoption', async ({
  root,
}) => {
  const deps = rewriteDeps()
  const ledger = await Ledger.open(root)
  await topUp(ledger, deps, { metric: metrics[0], since: 0, days: 5 })
  const { lake } = ledger.head()
  const [file] = liveFiles(ledger)
  ledger.close()
  if (!file) throw new Error('no file')
  await nameLake(root, file.path, lake ?? '', 41)
  lose(root)
  deps.clock.now += 86_400
  await adoptLost(root, { catalogue, synthetic: true }, deps)
  using adopted = await Ledger.open(root)
  expect(adopted.head()).toMatchObject({ lake, version: 42, committed_at: deps.clock.now * 1_000_000 })
  expect(liveFiles(adopted)).toMatchObject([{ path: file.path, rows: file.rows, min_t: file.min_t, max_t: file.max_t }])
  rmSync(inLake(root, 'spool'), { recursive: true, force: true })
  // Its end is that of one process, whoever else has waited to adopt it.
  const free: boolean[] = []
  const move: Disk['move'] = async (from, to) => {
    free.push(isFree(root, commitLock))
    await realDisk.move(from, to)
  }
  for (let n = 0; n < 2; n++) await endAdoption(root, { ...deps, disk: { ...realDisk, move } })
  expect(free).toEqual([false])
})

test('the plan of an adopting that was killed is gone on with, as far as it speaks of files of a lake', async ({
  root,
}) => {
  const deps = rewriteDeps()
  const ledger = await Ledger.open(root)
  for (const metric of [metrics[0], metrics[1]]) await topUp(ledger, deps, { metric, since: 0, days: 5 })
  const [first, second] = liveFiles(ledger).map(({ path }) => path)
  const { lake } = ledger.head()
  ledger.close()
  if (first === undefined || second === undefined) throw new Error('not two files')
  for (const path of [first, second]) await nameLake(root, path, lake ?? '', 3)
  lose(root)
  const found = inLake(root, 'found-20240101t000000000z')
  mkdirSync(found)
  writeFileSync(inLake(root, 'notes.txt'), 'mine')
  const moves = [first, 'notes.txt', '../elsewhere'].map((path) => ({ path, why: 'so it was planned' }))
  writeFileSync(`${found}/adopting.json`, JSON.stringify({ version: 7, moves }))
  await adoptLost(root, { catalogue, synthetic: true }, deps)
  expect([first, 'notes.txt'].map((path) => [existsSync(`${found}/${path}`), existsSync(inLake(root, path))])).toEqual([
    [true, false],
    [false, true],
  ])
  using adopted = await Ledger.open(root)
  expect([adopted.head().version, liveFiles(adopted).map(({ path }) => path)]).toEqual([8, [second]])
})

test('violations in surviving entries stay recorded unless later entries saw them reverted', async ({ root }) => {
  const deps = rewriteDeps()
  const ledger = await Ledger.open(root)
  for (const metric of [metrics[0], metrics[1]]) await topUp(ledger, deps, { metric, since: 0, days: 5 })
  // The ids that the files tell.
  const named = [...storedSeries(ledger).values()].map(
    ({ points: _points, first_t: _first, last_t: _last, id, ...own }) => {
      return { ...own, id: `${id}|||` }
    },
  )
  const [{ id: one } = { id: '' }, { id: other } = { id: '' }] = named
  const { provider, lake } = ledger.head()
  if (provider === null) throw new Error('no provider')
  for (const { path } of liveFiles(ledger)) await nameLake(root, path, lake ?? '', 2)
  const found = (series: string, t: number) => {
    const facts = { series, t, kind: 'changed', stored: '1.0', offered: '2.0' }
    return { ...facts, stored_at: 1e15, offered_at: 1e15, request: null }
  }
  const draft = { job: 'test', run: 'test', provider }
  const violations = [found(one, 0), found(one, 86_400), found(other, 0)]
  const incident = { ...found(other, 1), incident: 'metrics-x' }
  await commit(ledger, { ...draft, series: named, violations: [...violations, incident] }, deps)
  const seen = { t: 86_400, kind: 'changed', offered: '2.0' }
  await commit(ledger, { ...draft, passed: [{ series: one, differences: [seen] }] }, deps)
  const { series, t, kind, offered } = found(other, 0)
  const note = { id: violationId(found(other, 0)), series, t, kind, offered, why: 'known' }
  await commit(ledger, { ...draft, accepted: [note] }, deps)
  const told = (index: Ledger) =>
    storedViolations(index)
      .filter((row) => row.reverted_at === null)
      .map((row) => [row.series, row.t, row.incident, row.why].join(' '))
      .toSorted((a, b) => (a < b ? -1 : 1))
  const before = told(ledger)
  ledger.close()
  expect(before.length).toBe(3)
  truncateSync(inLake(root, 'journal/0000000001.json.gz'), 20)
  for (const end of ['', '-wal', '-shm']) rmSync(inLake(root, `ledger.sqlite${end}`), { force: true })
  deps.clock.now += 86_400
  await adoptLost(root, { catalogue, synthetic: true }, deps)
  using adopted = await Ledger.open(root)
  expect(told(adopted)).toEqual(before)
})
