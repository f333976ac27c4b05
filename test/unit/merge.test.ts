import { appendFileSync, rmSync, statSync } from 'node:fs'
import { describe, expect } from 'vitest'
import { metricSizes } from '../../src/sources/points/sizes.ts'
import { compact, mergeSmallFiles } from '../../src/maintenance/upkeep/merge-jobs.ts'
import { commit } from '../../src/lake/ledger/commit.ts'
import { realDisk } from '../../src/lake/store/disk.ts'
import { Engine, quote, quoteList } from '../../src/lake/store/engine.ts'
import { storedVersions, liveFiles } from '../../src/lake/ledger/index-queries.ts'
import { inLake, registryFile } from '../../src/lake/store/layout.ts'
import { Ledger } from '../../src/lake/ledger/ledger.ts'
import { usualEncoding, writeEncoded, writeForGood } from '../../src/maintenance/upkeep/rewrite.ts'
import { countUnproved, withSuperseded } from '../../src/maintenance/upkeep/merge-files.ts'
import { findOrphans, openSpool } from '../../src/lake/ledger/spool-sweep.ts'
import { versionChanges } from '../../src/lake/ledger/run-queries.ts'
import { inFolder } from '../helpers/folders.ts'
import { test as it } from '../helpers/lake-test.ts'
import { answers } from '../helpers/points-at.ts'
import { day, metrics, provider, rewriteDeps, start, topUp, topUps } from '../helpers/lakes/top-ups.ts'

/** A lake of a few files a partition, with the job done to it. */
async function withLake(tops: number, work: (root: string, ledger: Ledger) => Promise<void>): Promise<void> {
  await inFolder(async (root) => {
    const deps = rewriteDeps()
    using ledger = await Ledger.open(root)
    for (let n = 0; n < tops; n++)
      for (const metric of metrics) await topUp(ledger, deps, { metric, since: n * 20, days: 20 })
    await work(root, ledger)
  })
}

const paths = (ledger: Ledger): string[] => liveFiles(ledger).map((file) => file.path)

describe('merging', () => {
  it('makes one file a partition, once', () =>
    withLake(3, async (root, ledger) => {
      const before = await answers(ledger, null)
      const summary = await compact(root, rewriteDeps())
      expect(summary).toMatchObject({ partitions: 2, files_removed: 6, files_added: 2, rows: 240, abandoned: [] })
      await ledger.catchUp()
      expect(liveFiles(ledger)).toHaveLength(2)
      expect(await answers(ledger, null)).toBe(before)
      const again = await compact(root, rewriteDeps())
      expect(again).toMatchObject({ version: summary.version, versions_made: 0, partitions: 0 })
      expect(versionChanges(ledger).at(-1)).toMatchObject({
        job: 'compact',
        points_added: 0,
        added: { files: 2, rows: 240 },
        replaced: { files: 6, rows: 240 },
        removed: { files: 0 },
      })
    }))

  it('keeps the digest, the bounds and the smallest lag that the ledger knows', () =>
    withLake(2, async (root, ledger) => {
      const sum = (): bigint => liveFiles(ledger).reduce((total, file) => total + BigInt(file.digest ?? 0), 0n)
      const before = sum()
      await compact(root, rewriteDeps())
      await ledger.catchUp()
      expect(sum()).toBe(before)
      const [supply, beta] = metrics.map((metric) => liveFiles(ledger).filter((file) => file.metric === metric))
      const us = (seconds: number): number => (start + seconds) * 1_000_000
      const range = { min_t: start, max_t: start + 39 * day }
      const known = { min_available: us(day + 600), max_available: us(40 * day + 600), min_lag: 600_000_000 }
      expect(supply).toMatchObject([{ ...range, meta: known }])
      // Of the other metric each point says when it was known, up to six seconds later: `topUp` does.
      const told = { min_available: us(day + 900), max_available: us(40 * day + 904), min_lag: 900_000_000 }
      expect(beta).toMatchObject([{ ...range, meta: told }])
    }))

  it('merges by itself only where files are many, and then leaves them alone', () =>
    withLake(1, async (_root, ledger) => {
      const deps = rewriteDeps()
      expect(await mergeSmallFiles(ledger, deps)).toMatchObject({ partitions: 0, versions_made: 0 })
      await topUp(ledger, deps, { metric: metrics[0], since: 20, days: 20 })
      expect(await mergeSmallFiles(ledger, deps)).toMatchObject({ partitions: 1, files_removed: 2, versions_made: 1 })
      expect(await mergeSmallFiles(ledger, deps)).toMatchObject({ partitions: 0, versions_made: 0 })
      expect(storedVersions(ledger).at(-1)).toMatchObject({ job: 'merge', run: expect.stringMatching(/-merge$/) })
    }))

  it('leaves a damaged file as it is and says which', () =>
    withLake(2, async (root, ledger) => {
      const [first = ''] = paths(ledger)
      appendFileSync(inLake(root, first), 'x')
      const { abandoned, partitions } = await compact(root, rewriteDeps())
      expect(abandoned).toMatchObject([{ reason: expect.stringContaining(first) as string }])
      expect(partitions).toBe(1)
      rmSync(inLake(root, first))
      expect((await compact(root, rewriteDeps())).abandoned[0]?.reason).toContain('missing')
      await ledger.catchUp()
      expect(paths(ledger)).toContain(first)
    }))

  it('leaves the old files in place when the disk is full', () =>
    withLake(2, async (root, ledger) => {
      const before = { files: paths(ledger), said: await answers(ledger, null) }
      const full = (): Promise<never> => Promise.reject(Object.assign(new Error('full'), { code: 'ENOSPC' }))
      for (const step of ['sync', 'move', 'write'] as const) {
        const disk = { ...realDisk, [step]: full }
        await expect(compact(root, rewriteDeps({ disk }))).rejects.toThrow('no space left')
        await ledger.catchUp()
        expect(paths(ledger)).toEqual(before.files)
        expect(await findOrphans(ledger)).toEqual([])
      }
      expect(await answers(ledger, null)).toBe(before.said)
    }))

  it('stops between partitions when it is interrupted', () =>
    withLake(2, async (root, ledger) => {
      const summary = await compact(root, rewriteDeps({ signal: AbortSignal.abort() }))
      expect(summary).toMatchObject({ stopped: true, partitions: 0 })
      expect(paths(ledger)).toHaveLength(4)
    }))

  it('refuses a second one at the same time by name, and steps aside after a fetch', () =>
    withLake(2, async (root, ledger) => {
      const atWork = Promise.withResolvers<void>()
      const released = Promise.withResolvers<void>()
      const sync = async (path: string): Promise<void> => {
        atWork.resolve()
        await released.promise
        await realDisk.sync(path)
      }
      const first = compact(root, rewriteDeps({ disk: { ...realDisk, sync } }))
      await atWork.promise
      await expect(compact(root, rewriteDeps())).rejects.toThrow('another merge job is at work')
      expect(await mergeSmallFiles(ledger, rewriteDeps())).toMatchObject({ partitions: 0 })
      released.resolve()
      expect((await first).partitions).toBe(2)
    }))

  it('lets go of a merge whose files left the view meanwhile', () =>
    withLake(2, async (root, ledger) => {
      const [gone = ''] = paths(ledger)
      const plain = rewriteDeps()
      let left = false
      const syncFolder = async (path: string): Promise<void> => {
        // The spool is opened after the choice: the file leaves between the choice and the commit.
        if (path.endsWith('spool') && !left) {
          left = true
          await commit(ledger, { job: 'test', run: 'x', provider, remove: [gone] }, plain)
        }
        await realDisk.syncFolder(path)
      }
      const program = rewriteDeps({ disk: { ...realDisk, syncFolder } })
      expect(await compact(root, program)).toMatchObject({ partitions: 1, files_removed: 2 })
      await ledger.catchUp()
      expect(paths(ledger)).not.toContain(gone)
      expect(paths(ledger)).toHaveLength(2)
    }))
})

describe('encodings', () => {
  it('stay within 5 % of the best tried, and time and keys cost nothing', async ({ root, ledger }) => {
    await topUp(ledger, rewriteDeps(), { metric: metrics[0], since: 0, days: 3000, assets: 10 })
    await compact(root, rewriteDeps())
    await ledger.catchUp()
    const [file] = liveFiles(ledger)
    if (!file) throw new Error('no file')
    const engine = await Engine.open(':memory:', { threads: 1 })
    const trial = inLake(root, 'trial.parquet')
    let best = Number.POSITIVE_INFINITY
    for (const version of ['v1', 'v2'])
      for (const group of [65_536, 122_880]) {
        await engine.run(
          `COPY (FROM read_parquet(${quoteList([inLake(root, file.path)])}, hive_partitioning = false)) TO ${quote(trial)}
             (FORMAT parquet, PARQUET_VERSION ${version}, COMPRESSION zstd, COMPRESSION_LEVEL 9, DICTIONARY_SIZE_LIMIT 0,
              ROW_GROUP_SIZE ${group})`,
        )
        const [size] = await engine.rows<{ bytes: bigint }>(
          `SELECT sum(total_compressed_size) AS bytes FROM parquet_metadata(${quoteList([trial])})`,
        )
        best = Math.min(best, Number(size?.bytes))
      }
    engine.close()
    expect(file.bytes).toBeLessThanOrEqual(best * 1.05 + 4096)
    const [sizes] = await metricSizes(root)
    expect(sizes).toMatchObject({ metric: metrics[0], points: 30_000, files: 1 })
    for (const column of ['asset', 'currency', 't', 'available_at', 'observed_at', 'basis'])
      expect(sizes?.columns[column]).toBeLessThan(0.02)
  })
})

it('files of all metrics have a size limit apart from that of each metric', () =>
  withLake(1, async (root, ledger) => {
    const more = metrics.map((metric) => ({ metric, since: 20, days: 20 }))
    await topUps(ledger, rewriteDeps(), more, 'recent')
    const sizes = (await metricSizes(root)).map(({ metric, files, points }) => [metric, files, points])
    const each = metrics.map((metric) => [metric, 1, 40])
    expect(new Set(sizes)).toEqual(new Set([...each, ['(recent)', 1, 80]]))
  }))

describe('texts and numbers', () => {
  const measured = async (root: string, value: string): Promise<{ mark: string; bytes: number; usual: number }> => {
    using engine = await Engine.open(':memory:', { threads: 1 })
    await engine.run(`SELECT setseed(0.5); CREATE TABLE made AS SELECT i AS t, ${value} FROM range(4000) r(i)`)
    const out = inLake(root, 'out.parquet')
    const other = inLake(root, 'usual.parquet')
    const rows = { source: 'made', order: '' }
    const metadata = { pitlake_schema: '1' }
    const mark = await writeForGood(engine, rows, { minusZero: false, out, metadata })
    await writeEncoded(engine, rows, other, usualEncoding(false, 4000), metadata)
    return { mark, bytes: statSync(out).size, usual: statSync(other).size }
  }

  it('packs objects denser, numbers as ever', async ({ root }) => {
    const part = (i: number): string => `'"level_${i}":' || (random() * 1e6)::DECIMAL(12, 4)`
    const parts = Array.from({ length: 12 }, (_, i) => part(i)).join(" || ',' || ")
    const objects = await measured(root, `'{' || ${parts} || '}' AS o`)
    expect(objects.mark).toBe('v2/1000/16')
    expect(objects.bytes).toBeLessThan(objects.usual * 0.95)
    const numbers = await measured(root, 'random() AS v')
    expect(numbers.mark).toBe('v2/1000')
  })
})

describe('registry tables', () => {
  it('merges history by all columns, signs of doubles included, and no dated table', async ({ root }) => {
    const deps = rewriteDeps()
    using ledger = await Ledger.open(root)
    const spool = await openSpool(root, 'r', deps)
    const engine = await Engine.open()
    for (const [n, table] of ['history.products', 'history.products', 'products', 'products'].entries()) {
      const temporary = `${n}.parquet`
      await engine.run(
        `COPY (SELECT 'P' || (9 - i) AS id, make_timestamptz(${n}::BIGINT) AS at, CASE WHEN i % 2 = 0 THEN '-0.0'::DOUBLE ELSE 0 END AS d,
           {'k': i} AS record FROM range(5) r(i)) TO ${quote(spool.file(temporary))} (FORMAT parquet, DICTIONARY_SIZE_LIMIT 0)`,
      )
      const file = { metric: null, interval: null, rows: 5, min_t: null, max_t: null, digest: null, meta: {} }
      const label = table === 'products' ? `2024-01-0${n}` : ''
      const path = registryFile(table, `f${n}`, label || null)
      const add = [{ ...file, table, label, path, temporary: spool.path(temporary) }]
      await commit(ledger, { job: 'registry', run: 'r', provider, add }, deps)
    }
    expect(await compact(root, deps)).toMatchObject({ partitions: 1, files_removed: 2, rows: 10, abandoned: [] })
    await ledger.catchUp()
    expect(liveFiles(ledger, { table: 'products' })).toHaveLength(2)
    const [merged] = liveFiles(ledger, { table: 'history.products' })
    const rows = await engine.rows<{ id: string; minus: bigint }>(
      `SELECT min(id) AS id, count(*) FILTER (WHERE signbit(d)) AS minus FROM ${quote(inLake(root, merged?.path ?? ''))}`,
    )
    expect(rows).toEqual([{ id: 'P5', minus: 6n }])
    engine.close()
    await spool.close()
  })
})

describe('superseded steps', () => {
  const steps = (rows: readonly string[]): string =>
    `(SELECT * FROM (VALUES ${rows.join(', ')}) AS steps (id, "at", record))`
  const columns = ['id', 'at', 'record'].map((name) => ({ name, type: 'VARCHAR' }))

  it('are those with a later step of the same id, each with the instant of the next', async () => {
    using engine = await Engine.open()
    const source = steps([`('a', 3, 'x')`, `('b', 1, 'y')`, `('a', 1, 'z')`, `('a', 2, 'w')`, `('a', 2, 'v')`])
    expect(await engine.rows(`FROM ${withSuperseded(source, columns)} ORDER BY ALL`)).toEqual([
      { id: 'a', at: 1, record: 'z', superseded_at: 2 },
      { id: 'a', at: 2, record: 'v', superseded_at: 3 },
      { id: 'a', at: 2, record: 'w', superseded_at: 3 },
      { id: 'a', at: 3, record: 'x', superseded_at: null },
      { id: 'b', at: 1, record: 'y', superseded_at: null },
    ])
    expect(await countUnproved(engine, withSuperseded(source, columns))).toBe(0)
  })

  it('are not believed without their successor', async () => {
    using engine = await Engine.open()
    const claimed = (rows: readonly string[]): string =>
      `(SELECT * FROM (VALUES ${rows.join(', ')}) AS steps (id, "at", superseded_at))`
    expect(await countUnproved(engine, claimed([`('a', 1, 2)`, `('a', 2, NULL)`]))).toBe(0)
    // No successor, one of another id, one that is not later.
    expect(await countUnproved(engine, claimed([`('a', 1, 2)`, `('a', 3, NULL)`]))).toBe(1)
    expect(await countUnproved(engine, claimed([`('a', 1, 2)`, `('b', 2, NULL)`]))).toBe(1)
    expect(await countUnproved(engine, claimed([`('a', 2, 2)`, `('b', 1, NULL)`]))).toBe(1)
  })
})

describe('schemas', () => {
  it('refuses a file that a newer program wrote', () =>
    withLake(1, async (root, ledger) => {
      const deps = rewriteDeps()
      const spool = await openSpool(root, 'newer', deps)
      const engine = await Engine.open()
      const [file] = liveFiles(ledger)
      if (!file) throw new Error('no file')
      await engine.run(
        `COPY (FROM read_parquet(${quoteList([inLake(root, file.path)])}, hive_partitioning = false))
         TO ${quote(spool.file('n.parquet'))} (FORMAT parquet, KV_METADATA {pitlake_schema: '99'})`,
      )
      engine.close()
      const path = file.path.replace(/t-\d+/, 't-newer')
      await commit(
        ledger,
        { job: 'fetch', run: 'x', provider, add: [{ ...file, temporary: spool.path('n.parquet'), path }] },
        deps,
      )
      await spool.close()
      await expect(compact(root, deps)).rejects.toThrow('newer pitlake')
    }))
})
