// @module-tag full
import { globSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { argueFromPlan } from '../../src/trust/lookahead/proof/prove.ts'
import { Ledger } from '../../src/lake/ledger/ledger.ts'
import { Engine, quoteList, type Row } from '../../src/lake/store/engine.ts'
import { compact, mergeSmallFiles } from '../../src/maintenance/upkeep/merge-jobs.ts'
import { vacuum } from '../../src/maintenance/upkeep/vacuum.ts'
import { checkContents, verifyVerdict } from '../../src/maintenance/upkeep/verify.ts'
import {
  archiveCatalogue,
  type ArchiveLake,
  began,
  level,
  rate,
  still,
  withArchives,
} from '../helpers/lakes/archives.ts'
import { deltaFiles, publishTo } from '../helpers/delta.ts'
import { askedAgain, examined } from '../helpers/looking.ts'
import { rewriteDeps } from '../helpers/lakes/top-ups.ts'
import { iso } from '../helpers/pit-oracle.ts'
import { makeViews, multiset, withViews } from '../helpers/views.ts'

const columns = 'metric, asset, "interval", t, available_at, observed_at, v, basis'

/** What points and vintages say now and at each version; the views are made anew. */
async function told(lake: Pick<ArchiveLake, 'root' | 'versions'>): Promise<string[][]> {
  await makeViews(lake.root, { catalogue: archiveCatalogue })
  return await withViews(lake.root, async (engine) => {
    const all: string[][] = []
    for (const at of [null, lake.versions[1] ?? 0]) {
      await engine.run(`SET VARIABLE as_of = ${at === null ? 'NULL' : `'${iso(at)}'`}`)
      all.push(multiset(await engine.rows(`SELECT ${columns} FROM points`)))
      all.push(multiset(await engine.rows(`SELECT ${columns}, ordinal, previous FROM vintages`)))
    }
    return all
  })
}

const selection = (lake: ArchiveLake) => ({ paths: [rate, level, still], assets: lake.assets, since: began })

async function fetch(lake: ArchiveLake) {
  return await lake.own.fetch(selection(lake), { input: { catalogue: archiveCatalogue } })
}

async function damagesOf(root: string): Promise<readonly string[]> {
  using ledger = await Ledger.open(root)
  return (await checkContents(ledger, new Set())).findings.map(({ kind, found }) => `${kind} ${found}`)
}

/** The published tables answer by the published text as the views do. */
async function holdPublished(lake: ArchiveLake): Promise<void> {
  const out = `${lake.root}-published`
  await publishTo(lake.root, out, { catalogue: archiveCatalogue })
  using engine = await Engine.open(':memory:', { threads: 1 })
  const [text = ''] = readFileSync(join(out, 'readers/duckdb.sql'), 'utf8').split('CREATE OR REPLACE MACRO universe')
  const files = (table: string): string => quoteList([...deltaFiles(join(out, table)).keys()])
  const scan = (_: string, table: string): string => `read_parquet(${files(table)}, hive_partitioning = false)`
  await engine.run(text.replaceAll(/delta_scan\('[^']*\/(\w+)'\)/g, scan))
  const days = lake.versions.map((at, n) => `('${lake.assets[n % 2]}', make_timestamptz(${at + 5000}::BIGINT))`)
  await withViews(lake.root, async (views) => {
    for (const one of [engine, views])
      await one.run(`CREATE TEMP TABLE d AS SELECT * FROM (VALUES ${days.join(', ')}) AS d (asset, ts)`)
    for (const at of lake.versions.map((us) => `make_timestamptz(${us + 5000}::BIGINT)`)) {
      await views.run(`SET VARIABLE as_of = ${at}`)
      const select = 'SELECT metric, asset, epoch_us(t) AS t, v'
      const own = `${select} FROM points`
      const other = `${select} FROM pit_points(as_of := ${at})`
      expect(multiset(await engine.rows(other))).toEqual(multiset(await views.rows(own)))
      const join = (more: string): string =>
        `SELECT asset, epoch_us(ts) AS ts, epoch_us(t) AS t, v FROM pit_join('d', '${rate}', '24h'${more})`
      expect(multiset(await engine.rows(join(`, as_of := ${at}`)))).toEqual(multiset(await views.rows(join(''))))
    }
  })
  rmSync(out, { recursive: true, force: true })
}

test('L2: what a lake of vintages says outlives merges, a vacuum, a lost index, a lost journal', async () => {
  await withArchives(3, { assets: 3, versions: 3 }, async (lake) => {
    const { root } = lake
    const before = await told(lake)
    expect(before.map((rows) => rows.length).slice(0, 2)).not.toContain(0)
    const version = async (): Promise<number> => {
      using ledger = await Ledger.open(root)
      return ledger.head().version
    }
    expect(await fetch(lake)).toMatchObject({ points_added: 0, vintages_added: 0, violations: 0 })
    const stood = await version()
    expect(await fetch(lake)).toMatchObject({ points_added: 0, vintages_added: 0, violations: 0 })
    expect(await version()).toBe(stood)
    expect(await damagesOf(root)).toEqual([])
    {
      using ledger = await Ledger.open(root)
      await mergeSmallFiles(ledger, rewriteDeps())
    }
    await compact(root, rewriteDeps())
    expect(await told(lake)).toEqual(before)
    await vacuum({ root, keepSeconds: 0, really: true }, { ...rewriteDeps(), buildViews: () => Promise.resolve() })
    expect(globSync('points/**/*.parquet', { cwd: root })).toHaveLength(3)
    expect(await told(lake)).toEqual(before)
    expect(await damagesOf(root)).toEqual([])
    ;(await Ledger.rebuild(root)).close()
    expect(await told(lake)).toEqual(before)
    await holdPublished(lake)
    for (const path of ['journal', 'runs', 'ledger.sqlite']) rmSync(join(root, path), { recursive: true, force: true })
    await examined(root, lake.own.clock.now, { adopt: { catalogue: archiveCatalogue, synthetic: true } })
    expect(await told(lake)).toEqual(before)
  })
})

test('L2: verify takes a revision for a vintage', async () => {
  await withArchives(5, { assets: 2, versions: 3 }, async (lake) => {
    const [point] = lake.changes.filter(({ metric }) => metric === rate)
    lake.revise(rate, point?.asset ?? '', point?.t ?? 0, 99)
    const { root, own } = lake
    const summary = await askedAgain(own, { catalogue: archiveCatalogue })
    expect(verifyVerdict(summary)).toBeNull()
    expect(summary).toMatchObject({ vintages_added: 1, points_added: 0, results: { revised: 1, changed: 0 } })
    await makeViews(root, { catalogue: archiveCatalogue })
    await withViews(root, async (engine) => {
      const rows: Row[] = await engine.rows(`SELECT ordinal, v FROM vintages WHERE v = 99`)
      expect(rows.map(({ v }) => v)).toEqual([99])
      const asked = {
        name: rate,
        interval: ['24h'],
        currency: [],
        exchange: [],
        network: [],
        asset: ['A0'],
        defaults: true,
      }
      const early = JSON.stringify({ metrics: [{ ...asked, everywhere: true, last: '2024-03-02T00:00:00Z' }] })
      const notes = await engine.rows(`SELECT code, figures FROM question_notes('${early}')`)
      const first = new Date(Math.floor((lake.versions[0] ?? 0) / 1e6) * 1000).toISOString().replace('.000', '')
      expect(notes).toMatchObject([{ code: 'never-observed', figures: expect.stringContaining(first) }])
      await engine.run(`SET VARIABLE backfill = 'rule'`)
      expect(await engine.rows(`SELECT code FROM question_notes('${early}')`)).toEqual([])
      await engine.run('RESET VARIABLE backfill')
      const [sums] = await engine.rows(
        `SELECT sum(points) AS points, sum(vintages) AS vintages FROM revisions('${rate}')`,
      )
      const [own] = await engine.rows(
        `SELECT count(DISTINCT (asset, t)) AS points, count(*) AS vintages FROM vintages WHERE metric = '${rate}'`,
      )
      expect([Number(sums?.['points']), Number(sums?.['vintages'])]).toEqual([
        Number(own?.['points']),
        Number(own?.['vintages']),
      ])
      const prove = async (from: string): Promise<boolean> => {
        const sql = `WITH d AS (SELECT ts, 'A0' AS asset FROM calendar('2024-03-01', '2024-04-01', '1 day')) SELECT ts, v FROM ${from}`
        return (await argueFromPlan(engine, { sql, ts: 'ts', labels: [] })).proved
      }
      expect(await prove(`pit_join('d', '${rate}', '24h')`)).toBe(true)
      expect(await prove(`d JOIN points AS p USING (asset) WHERE p.available_at <= ts`)).toBe(false)
    })
  })
})

test('L2: vintages that went with their files are not made up: what comes again is known from then on', async () => {
  await withArchives(9, { assets: 2, versions: 4 }, async (lake) => {
    const { root, own } = lake
    const newest = (): Promise<Row[]> =>
      withViews(root, async (engine) => engine.rows('SELECT metric, asset, t, v FROM points ORDER BY ALL'))
    const before = await newest()
    for (const path of globSync('points/**/*.parquet', { cwd: root })) rmSync(join(root, path))
    const { forgotten } = await examined(root, own.clock.now, { repair: true, forgetLost: true })
    expect(forgotten?.points).toBeGreaterThan(before.length)
    own.clock.now += 60
    expect(await fetch(lake)).toMatchObject({ violations: 0, vintages_added: 0, points_added: before.length })
    expect(await damagesOf(root)).toEqual([])
    await makeViews(root, { catalogue: archiveCatalogue })
    expect(await newest()).toEqual(before)
    await withViews(root, async (engine) => {
      const [revised] = lake.changes.filter(({ metric, asset, t, at }) =>
        lake.changes.some((one) => one.metric === metric && one.asset === asset && one.t === t && one.at < at),
      )
      const named = `metric = '${revised?.metric}' AND asset = '${revised?.asset}' AND epoch(t)::BIGINT = ${revised?.t}`
      const [row] = await engine.rows(
        `SELECT epoch_us(available_at)::DOUBLE AS at, ordinal FROM vintages WHERE ${named}`,
      )
      expect([row?.['ordinal'], Number(row?.['at']) >= own.clock.now * 1e6]).toEqual([1n, true])
    })
    // Once a lake has vintages of a metric, a catalogue that calls it no longer revisable makes no violations of them.
    const point = lake.changes.find(({ metric }) => metric === level)
    lake.revise(level, point?.asset ?? '', point?.t ?? 0, 77)
    const strict = [...archiveCatalogue.endpoints].map(([path, one]) => [path, { ...one, revisable: false }] as const)
    const catalogue = { ...archiveCatalogue, endpoints: new Map(strict) }
    own.clock.now += 86_400
    expect(await own.fetch(selection(lake), { input: { catalogue } })).toMatchObject({
      violations: 0,
      vintages_added: 1,
    })
  })
})
