import { readFileSync, writeFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { loadCoverage, liveFiles, summary } from '../../src/lake/ledger/index-queries.ts'
import { Ledger } from '../../src/lake/ledger/ledger.ts'
import { Engine, quote } from '../../src/lake/store/engine.ts'
import { inLake } from '../../src/lake/store/layout.ts'
import { withRig } from '../helpers/fetching.ts'
import { catalogue } from '../helpers/sandbox-client.ts'
import { reading } from '../helpers/ledgers.ts'

const at = (text: string) => Date.parse(`${text}Z`) / 1000
const now = at('2026-03-02T12:00:00')
const everything = { assets: ['BTC', 'ETH'], paths: ['*'], intervals: ['24h'], since: at('2025-12-01T00:00:00') }

test('a fetch of all endpoints under every fault stores the true points, and a repetition changes nothing', async () =>
  withRig(now, async (rig) => {
    rig.faults(
      'status-500:each,first=1,share=0.1',
      'status-503:each,first=1,share=0.1,retry=1',
      'status-504:each,first=1,share=0.1',
      'status-429:each,first=1,share=0.1,retry=1',
      'reset:each,first=1,share=0.1',
      'cut-body:each,first=1,share=0.1,bytes=500,announce',
      'cut-gzip:each,first=1,share=0.1,bytes=100',
      'empty-200:each,first=1,share=0.1',
      'html:each,first=1,share=0.1',
      'poison-nan:each,first=1,share=0.1',
      'poison-overflow:each,first=1,share=0.1',
      'poison-millisecond-t:each,first=1,share=0.1',
      'duplicate:n=2',
      'disorder:block=8',
    )
    let last = await rig.fetch(everything)
    for (let round = 0; round < 8 && last.windows.failed > 0; round++) last = await rig.fetch(everything)
    expect(await rig.failures()).toEqual([])
    expect(last.violations).toBe(0)
    const truth = rig.truth(everything)
    expect(truth.length).toBeGreaterThan(5000 * everything.assets.length)
    expect(await rig.stored()).toEqual(truth)

    const ledger = await Ledger.openToRead(rig.root)
    const coverage = loadCoverage(ledger)
    // Every endpoint of each asset; at noon no rule holds back the first of March any more.
    expect(coverage.size).toBe(catalogue.endpoints.size * everything.assets.length)
    const days = (at('2026-03-02T00:00:00') - everything.since) / 86_400
    for (const [id, windows] of coverage) {
      const told = Array.from({ length: days }, (_, n) => everything.since + n * 86_400)
      const silent = told.filter((t) => !windows.some(({ since, until }) => since <= t && t + 86_400 <= until))
      expect(silent, id).toEqual([])
    }
    const before = { ...summary(ledger) }
    ledger.close()

    rig.faults()
    const again = await rig.fetch(everything)
    expect(again).toMatchObject({ points_added: 0, files_added: 0, violations: 0, version: before.version })
    rig.clock.now += 600
    expect(await rig.fetch(everything)).toMatchObject({ points_added: 0, files_added: 0, version: before.version })
  }))

test('a run of several commits resolves every window that it requested', async () =>
  withRig(now, async (rig) => {
    const selection = {
      ...everything,
      assets: ['BTC', 'ETH', 'SOL'],
      currencies: ['*'],
      since: at('2026-02-01T00:00:00'),
    }
    rig.faults('slow-first-byte:ms=200,share=0.3')
    const first = await rig.fetch(selection)
    expect(first.version).toBeGreaterThan(1)
    const coverage = await reading(rig.root, (ledger) => loadCoverage(ledger))
    const currencies = [...catalogue.endpoints.values()].map((endpoint) => Math.max(1, endpoint.currencies.length))
    expect(coverage.size).toBe(3 * currencies.reduce((sum, count) => sum + count, 0))
  }))

test('points of many metrics in one commit go to one file, sorted by metric, interval, series and t', async () =>
  withRig(now, async (rig) => {
    const paths = ['supply/*', 'addresses/active_count_pit', 'market/*', 'indicators/*', 'addresses/loss_count_pit']
    const since = now - 4 * 86_400
    const selection = { assets: ['ETH', 'BTC'], paths, intervals: ['24h', '1h'], currencies: ['usd', 'native'], since }
    const { version } = await rig.fetch(selection)
    const files = await reading(rig.root, (ledger) => liveFiles(ledger, { table: 'points' }))
    expect(files.length).toBeLessThanOrEqual(version)
    expect(files.map(({ metric }) => metric)).toEqual(files.map(() => null))
    using engine = await Engine.open(':memory:', { threads: 1 })
    for (const { path, rows } of files) {
      const stored = await engine.rows(
        `SELECT metric, "interval", asset, coalesce(currency, '~') AS currency, coalesce(exchange, '~') AS exchange,
           coalesce(network, '~') AS network, coalesce(params, '~') AS params, epoch_us(t)::VARCHAR AS t
         FROM read_parquet(${quote(inLake(rig.root, path))}) ORDER BY file_row_number`,
      )
      const keys = stored.map((row) => Object.values(row).map(String).join('\u0000'))
      expect([keys.length, new Set(keys).size]).toEqual([rows, rows])
      expect(keys).toEqual(keys.toSorted())
    }
    expect(await rig.stored()).toEqual(rig.truth(selection))
  }))

test('a body with a missing middle is reported as a gap by the run that receives it', async () =>
  withRig(now, async (rig) => {
    const selection = { assets: ['BTC', 'ETH'], paths: ['supply/current_pit'], since: now - 120 * 86_400 }
    const holes = async (): Promise<number[]> => {
      using ledger = await Ledger.openToRead(rig.root)
      const gaps = [...loadCoverage(ledger).values()].flat().filter(({ reason }) => reason === 'gap')
      return gaps.map(({ since, until }) => (until - since) / 86_400)
    }
    rig.faults('vanished@supply/*:asset=BTC,point=30,n=40')
    const first = await rig.fetch(selection)
    const told = await holes()
    expect(told).toContainEqual(expect.toSatisfy((days: number) => days >= 40))
    expect(first).toMatchObject({ gaps: told.length, violations: 0, windows: { failed: 0 } })
    // Nothing was asked: nothing is told anew.
    expect(await rig.fetch(selection)).toMatchObject({ gaps: 0, points_added: 0 })
    rig.faults()
    rig.clock.now += 8 * 86_400
    expect(await rig.fetch(selection)).toMatchObject({ gaps: (await holes()).length })
    expect((await holes()).every((days) => days < 40)).toBe(true)
    expect(await rig.stored()).toEqual(rig.truth(selection))
  }))

test('a series without points is compared with nothing: files of others may be damaged', async () =>
  withRig(now, async (rig) => {
    const selection = { paths: ['supply/current_pit'], since: now - 20 * 86_400 }
    await rig.fetch({ ...selection, assets: ['BTC'] })
    const [held] = await reading(rig.root, (ledger) => liveFiles(ledger, { table: 'points' }))
    const path = inLake(rig.root, held?.path ?? '')
    const bytes = readFileSync(path)
    writeFileSync(path, bytes.toString('latin1').replaceAll('PAR1', 'rot!'), 'latin1')
    const eth = await rig.fetch({ ...selection, assets: ['ETH'] })
    expect([eth.points_added > 0, eth.windows.failed]).toEqual([true, 0])
    rig.clock.now += 2 * 86_400
    await expect(rig.fetch({ ...selection, assets: ['BTC'] })).rejects.toThrow(/rot!|Parquet|magic/)
    writeFileSync(path, bytes)
    await rig.fetch({ ...selection, assets: ['BTC', 'ETH'] })
    expect(await rig.stored()).toEqual(rig.truth({ ...selection, assets: ['BTC', 'ETH'] }))
  }))
