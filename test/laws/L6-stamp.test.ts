import { createHash } from 'node:crypto'
import {
  copyFileSync,
  cpSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { compact } from '../../src/maintenance/upkeep/merge-jobs.ts'
import { replay, stamp, type Stamped } from '../../src/trust/results/stamp.ts'
import { vacuum } from '../../src/maintenance/upkeep/vacuum.ts'
import { commit, noteRunFacts } from '../../src/lake/ledger/commit.ts'
import { writeCheckpoint } from '../../src/lake/ledger/checkpoint.ts'
import { type Disk, realDisk } from '../../src/lake/store/disk.ts'
import { Engine, quote } from '../../src/lake/store/engine.ts'
import { storedStamps, storedVersions, liveFiles } from '../../src/lake/ledger/index-queries.ts'
import { inLake } from '../../src/lake/store/layout.ts'
import { Ledger } from '../../src/lake/ledger/ledger.ts'
import { openQuery } from '../../src/query/lake.ts'
import { carryFile } from '../../src/query/row-comparison.ts'
import { keptRows, sameRows } from '../../src/trust/results/stamped-rows.ts'
import { providerOf } from '../../src/lake/ledger/provider.ts'
import { sweep } from '../../src/lake/ledger/spool-sweep.ts'
import { commitDeps } from '../helpers/lakes/drafts.ts'
import { examined } from '../helpers/looking.ts'
import { rewriteDeps } from '../helpers/lakes/top-ups.ts'
import { powerDisk } from '../helpers/power.ts'
import { catalogue } from '../helpers/sandbox-client.ts'
import { addThirtyDays, lateMetric, lateDaysAndProducts } from '../helpers/lakes/late-days-and-products.ts'
import type { TestLake } from '../helpers/lakes/lake-recipe.ts'
import { openTestLake } from '../helpers/lakes/make-lake.ts'
import { makeViews } from '../helpers/views.ts'
import { reading } from '../helpers/ledgers.ts'

let lake: TestLake
let out: string
let stamped: Stamped

const run = { sleep: async () => await Promise.resolve() }
const query = `-- a mean that needs every bit
SET VARIABLE backfill = 'rule';
SELECT date_trunc('month', t) AS month, asset, sum(v) / 3 AS third, count(*) AS points, list(v ORDER BY t)[1:3] AS head, -0.0::DOUBLE AS zero
FROM points WHERE metric = '${lateMetric}' GROUP BY ALL ORDER BY ALL;`

async function stampIt(root: string, path: string, text: string, variables: Stamped['variables'] = {}) {
  return await stamp({ root, catalogue, query: text, out: path, variables }, run, commitDeps())
}

beforeAll(async () => {
  lake = await openTestLake(lateDaysAndProducts)
  out = join(lake.root, '..', 'result.parquet')
  stamped = await stampIt(lake.root, out, query)
}, 300_000)

afterAll(() => lake.remove())

/** A copy of the lake to be damaged; its views name the copy's own files. */
function copyOf(name: string): string {
  const copy = join(lake.root, '..', name)
  cpSync(lake.root, copy, { recursive: true })
  return copy
}

describe('stamp and replay', () => {
  test('a stamped result replays bit for bit after the lake has grown and moved', async () => {
    expect(stamped).toMatchObject({ rows: 20, query, variables: {} })
    await addThirtyDays(lake.root)
    await makeViews(lake.root)
    const now = await stampIt(lake.root, join(lake.root, '..', 'now.parquet'), query)
    expect(now.result).not.toBe(stamped.result)
    expect(await replay(lake.root, out, run, 'pitlake test')).toMatchObject({ same: true, version: stamped.version })
    expect(await replay(copyOf('moved'), out, run, 'pitlake test')).toMatchObject({ same: true })
  })

  test('a stamp names no folder, whatever signs are in its name, and replays after a move', async () => {
    const odd = copyOf("it's [1] l*ke")
    const path = join(odd, '..', 'odd.parquet')
    await makeViews(odd)
    const { script } = await stampIt(odd, path, `SELECT count(*) AS n, sum(v) AS v FROM points`)
    const text = readFileSync(inLake(odd, script), 'utf8')
    expect([text.includes(join(odd, '..')), text.includes('/exports/links')]).toEqual([false, false])
    const moved = join(lake.root, '..', 'elsewhere')
    renameSync(odd, moved)
    expect(await replay(moved, path, run, 'pitlake test')).toMatchObject({ same: true })
    renameSync(moved, `${odd} again`)
    expect(await replay(`${odd} again`, path, run, 'pitlake test')).toMatchObject({ same: true })
  })

  test('a query without an order is put into one, to the last bit; ties of an order may move', async () => {
    const path = join(lake.root, '..', 'unordered.parquet')
    await stampIt(
      lake.root,
      path,
      `SELECT x FROM (VALUES (2.0::DOUBLE), (CAST('-0.0' AS DOUBLE)), (1.0), (0.0)) AS v (x)`,
    )
    const engine = await Engine.open()
    const rows = await engine.rows(`FROM ${quote(path)}`)
    const tied = join(lake.root, '..', 'tied.parquet')
    await stampIt(lake.root, tied, `SELECT v, 1 AS one FROM points ORDER BY one`)
    const session = await openQuery(lake.root)
    await carryFile(tied, session, keptRows.brought)
    await session.run(`CREATE TEMP TABLE stamped_result AS FROM stamped_before ORDER BY v DESC`)
    const same = await sameRows(session)
    const others: boolean[] = []
    for (const change of [
      'UPDATE stamped_result SET v = v + 1 WHERE v = (SELECT max(v) FROM stamped_result)',
      'DELETE FROM stamped_result WHERE v = (SELECT max(v) FROM stamped_result)',
      'INSERT INTO stamped_result FROM stamped_result LIMIT 1',
    ]) {
      await session.run(`CREATE OR REPLACE TEMP TABLE stamped_result AS FROM stamped_before; ${change}`)
      others.push(await sameRows(session))
    }
    session.close()
    engine.close()
    expect(rows.map((row) => (Object.is(row['x'], -0) ? '-0' : String(Number(row['x']))))).toEqual([
      '-0',
      '0',
      '1',
      '2',
    ])
    expect([same, ...others]).toEqual([true, false, false, false])
    expect((await replay(lake.root, path, run, 'pitlake test')).same).toBe(true)
  })

  test('a note pins the stamp and makes no version: the data are as they were', async () => {
    const ledger = await Ledger.openToRead(lake.root)
    const known = storedStamps(ledger).find((held) => held.id === stamped.id)
    const jobs = storedVersions(ledger).map(({ job }) => job)
    const data = liveFiles(ledger, { version: stamped.version }).map(({ path }) => path)
    ledger.close()
    expect(known).toMatchObject({ version: stamped.version, digest: stamped.digest })
    expect(jobs).not.toContain('stamp')
    const text = readFileSync(inLake(lake.root, `stamps/${stamped.id}.json`), 'utf8')
    const [, sum, rest] = /^\{"sha256":"([0-9a-f]{64})",(.*)\n$/.exec(text) ?? []
    expect(createHash('sha256').update(`{${rest}`).digest('hex')).toBe(sum)
    const note = JSON.parse(text) as { files: { path: string; sha256: string; bytes: number }[] }
    expect(note).toMatchObject({ version: stamped.version, digest: stamped.digest, program: 'pitlake test' })
    expect(note.files.map(({ path }) => path)).toEqual(expect.arrayContaining([stamped.script, ...data]))
    for (const { path, sha256, bytes } of note.files) {
      const held = readFileSync(inLake(lake.root, path))
      expect([path, held.length, createHash('sha256').update(held).digest('hex')]).toEqual([path, bytes, sha256])
    }
    expect(readFileSync(inLake(lake.root, stamped.script), 'utf8')).not.toContain(lake.root)
  })

  test('a stamped lake has the version and the digest that it had', async () => {
    const versionOf = async (): Promise<unknown> => {
      using session = await openQuery(lake.root)
      const rows = await session.rows('SELECT lake_version() AS version, lake_digest() AS digest')
      return rows
    }
    await makeViews(lake.root)
    const before = await versionOf()
    const first = await stampIt(lake.root, join(lake.root, '..', 'first.parquet'), 'SELECT 41 AS n')
    const note = inLake(lake.root, `stamps/${first.id}.json`)
    const text = readFileSync(note, 'utf8')
    await stampIt(lake.root, join(lake.root, '..', 'second.parquet'), 'SELECT 41 AS n')
    expect(readFileSync(note, 'utf8')).toBe(text)
    await makeViews(lake.root)
    expect(await versionOf()).toEqual(before)
  })

  test('a stamped result replays after sweep, vacuum and a rebuilt ledger', async () => {
    const copy = copyOf('vacuumed')
    const deps = rewriteDeps({ nowMicros: () => Date.now() * 1000 + 60_000_000 })
    await makeViews(copy)
    await addThirtyDays(copy)
    await compact(copy, deps)
    const world = { ...deps, buildViews: async () => await makeViews(copy) }
    const freed = await vacuum({ root: copy, keepSeconds: 0, really: true }, world)
    expect(freed.stamped.files).toBeGreaterThan(0)
    for (const suffix of ['', '-wal', '-shm']) rmSync(join(copy, `ledger.sqlite${suffix}`), { force: true })
    const ledger = await Ledger.rebuild(copy)
    await writeCheckpoint(realDisk, ledger)
    await sweep(ledger, deps)
    expect(storedStamps(ledger).map(({ id }) => id)).toContain(stamped.id)
    ledger.close()
    expect(await replay(copy, out, run, 'pitlake test')).toMatchObject({ same: true, version: stamped.version })
  })

  test('a vacuum that runs during a stamp keeps the files of the stamp', async () => {
    const copy = copyOf('vacuumed-beside')
    await makeViews(copy)
    using beside = await Ledger.open(copy)
    const provider = providerOf(beside)
    const deps = rewriteDeps({ nowMicros: () => Date.now() * 1000 })
    const world = { ...deps, buildViews: async () => await makeViews(copy) }
    let due = true
    const vacuumBeside = async (): Promise<void> => {
      if (!due) return
      due = false
      await commit(beside, { job: 'test', run: 'r', provider, state: { a: 1 } }, deps)
      await vacuum({ root: copy, keepSeconds: 0, really: true }, world)
    }
    const disk: Disk = {
      ...realDisk,
      write: async (path, text) => {
        await realDisk.write(path, text)
        if (path.endsWith('.sql')) await vacuumBeside()
      },
    }
    await noteRunFacts(beside, { id: 'r', job: 'fetch', started_at: 1 })
    const input = { root: copy, catalogue, query, out: join(copy, '..', 'beside.parquet'), variables: {} }
    const made = await stamp(input, run, commitDeps({ disk }))
    expect(due).toBe(false)
    expect(await replay(copy, made.out, run, 'pitlake test')).toMatchObject({ same: true })
  })

  test('a torn note of a stamp stops vacuum and is named; a lost one is named before it is forgotten', async () => {
    const copy = copyOf('noteless')
    const note = join(copy, 'stamps', `${stamped.id}.json`)
    const text = readFileSync(note)
    const findings = async (): Promise<string[]> => {
      const { findings: found } = await examined(copy, Date.now() / 1000)
      return found.flatMap(({ kind, path }) => (/^(views_|orphans)/.test(kind) ? [] : [`${kind} ${path}`]))
    }
    expect(await findings()).toEqual([])
    writeFileSync(note, text.subarray(0, 300))
    expect(await findings()).toEqual([`stamp_torn stamps/${stamped.id}.json`])
    const vacuuming = vacuum(
      { root: copy, keepSeconds: 0, really: true },
      { ...rewriteDeps(), buildViews: async () => await Promise.resolve() },
    )
    await expect(vacuuming).rejects.toMatchObject({ kind: 'integrity' })
    rmSync(note)
    expect(await findings()).toEqual([`stamp_lost stamps/${stamped.id}.json`])
    writeFileSync(note, text)
    expect(await findings()).toEqual([])
    truncateSync(join(copy, stamped.script), 10)
    expect(await findings()).toEqual([`file_torn ${stamped.script}`])
  })

  test('a stamp that was reported survives a power cut', async () => {
    const disk = powerDisk()
    const path = join(lake.root, '..', 'cut.parquet')
    const made = await stamp({ root: lake.root, catalogue, query: 'SELECT 7 AS n', out: path, variables: {} }, run, {
      ...commitDeps(),
      disk,
    })
    const found = join(lake.root, '..', 'after-cut')
    disk.survivors(join(lake.root, 'stamps'), found)
    for (const name of [`${made.id}.json`, made.script.slice('stamps/'.length)])
      expect(readFileSync(join(found, name))).toEqual(readFileSync(join(lake.root, 'stamps', name)))
  })

  test('a changed byte of the result is found before anything runs', async () => {
    const forged = join(lake.root, '..', 'forged.parquet')
    const bytes = readFileSync(out)
    bytes[100] = (bytes[100] ?? 0) ^ 1
    writeFileSync(forged, bytes)
    await expect(replay(lake.root, forged, run, 'pitlake test')).rejects.toMatchObject({
      kind: 'integrity',
      message: expect.stringContaining('changed since'),
    })
  })

  test('replay over a changed file of the lake shows the first difference', async () => {
    const copy = copyOf('tampered')
    const [first] = await reading(copy, (ledger) => liveFiles(ledger, { table: 'points', version: stamped.version }))
    const path = inLake(copy, first?.path ?? '')
    const engine = await Engine.open()
    await engine.run(
      `COPY (SELECT * REPLACE (CASE WHEN asset = 'ETH' AND t = TIMESTAMPTZ '2024-02-03 00:00:00+00' THEN v * (1 + 1e-15) ELSE v END AS v)
       FROM read_parquet(${quote(path)}, hive_partitioning = false)) TO ${quote(`${path}.new`)} (FORMAT parquet)`,
    )
    engine.close()
    copyFileSync(`${path}.new`, path)
    const done = await replay(copy, out, run, 'pitlake test')
    expect(done.same).toBe(false)
    expect(done.difference).toMatchObject({ row: 4, column: expect.stringMatching(/third|head/) })
    expect(done.difference?.stamped).not.toBe(done.difference?.replayed)
  })

  test('replay refuses a file without a stamp, of a different lake, or whose views are lost, with the reason', async () => {
    const plain = join(lake.root, '..', 'plain.parquet')
    const engine = await Engine.open()
    await engine.run(`COPY (SELECT 1 AS a) TO ${quote(plain)} (FORMAT parquet)`)
    engine.close()
    await expect(replay(lake.root, plain, run, 'p')).rejects.toMatchObject({ kind: 'usage' })
    const other = await openTestLake(lateDaysAndProducts)
    await expect(replay(other.root, out, run, 'p')).rejects.toThrow(/one of lake/)
    other.remove()
    const copy = copyOf('textless')
    for (const name of readdirSync(join(copy, 'stamps')))
      if (name.endsWith('.sql')) writeFileSync(join(copy, 'stamps', name), 'SELECT 1')
    await expect(replay(copy, out, run, 'p')).rejects.toThrow(/text of the views/)
  })

  test('a query that writes, fails or reads elsewhere leaves neither result nor version', async () => {
    const target = join(lake.root, '..', 'never.parquet')
    const before = await reading(lake.root, (ledger) => ledger.head().version)
    for (const bad of ['DROP VIEW points', 'SELECT nonsense', "FROM read_text('/etc/hostname')", ''])
      await expect(stampIt(lake.root, target, bad)).rejects.toThrow()
    expect(readdirSync(join(lake.root, '..'))).not.toContain('never.parquet')
    using after = await Ledger.openToRead(lake.root)
    expect(after.head().version).toBe(before)
  })
})
