import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { afterAll, beforeEach, describe, expect, test } from 'vitest'
import { type Diagnosis, examine } from '../../src/maintenance/upkeep/doctor.ts'
import { commit } from '../../src/lake/ledger/commit.ts'
import { writeCheckpoint } from '../../src/lake/ledger/checkpoint.ts'
import { realDisk } from '../../src/lake/store/disk.ts'
import { encodeEntry, type FileEntry } from '../../src/lake/ledger/entry.ts'
import { loadCoverage, storedSeries, liveFiles, summary } from '../../src/lake/ledger/index-queries.ts'
import { readEntry } from '../../src/lake/ledger/journal.ts'
import { checkpointFile, entryFile, inLake, places } from '../../src/lake/store/layout.ts'
import { Ledger } from '../../src/lake/ledger/ledger.ts'
import { buildViews } from '../../src/query/views/build.ts'
import { tryLock } from '../../src/lake/store/lock.ts'
import { rigOfFile } from '../helpers/rig-of-file.ts'
import { commitDeps, dump, stage } from '../helpers/lakes/drafts.ts'
import { catalogue } from '../helpers/sandbox-client.ts'
import { writing } from '../helpers/ledgers.ts'
import { writeEntryText } from '../helpers/entries.ts'

type DoctorInput = Parameters<typeof examine>[0]

const now = Date.UTC(2024, 5, 5, 12) / 1000
const selection = {
  assets: ['BTC', 'ETH'],
  paths: ['supply/current_pit', 'blockchain/block_height_pit'],
  since: now - 300 * 86_400,
}

let sound: string[]
/** What a fetch on the untouched lake asks, and its newest version. */
let quiet: number
let newest: number
const template = () => `${rig().root}-sound`

const rig = rigOfFile(now, async (made) => {
  await made.fetch({ ...selection, assets: ['BTC'] })
  await made.fetch(selection)
  quiet = (await made.fetch(selection)).requests
  newest = (await ask({ repair: true }, { views }, made.root)).version
  sound = await made.stored()
  cpSync(made.root, template(), { recursive: true })
})
afterAll(() => rmSync(template(), { recursive: true, force: true }))

beforeEach(() => {
  rmSync(rig().root, { recursive: true, force: true })
  cpSync(template(), rig().root, { recursive: true })
})

const clock = commitDeps({ nowMicros: () => now * 1e6 })
/** The real views, which take a while; where they are not what is looked at they stay as they are. */
const views = async (ledger: Ledger) => await buildViews(ledger, { catalogue, deps: clock, force: true })
const roomy = async () => ({ free: 1e12, total: 2e12 })

async function ask(
  flags: Partial<DoctorInput> = {},
  deps: Partial<Parameters<typeof examine>[1]> = {},
  data = rig().root,
): Promise<Diagnosis> {
  const input = { data, thorough: true, rebuildLedger: false, repair: false, forgetLost: false, ...flags }
  return await examine(input, { ...clock, space: roomy, views: async () => undefined, ...deps })
}

const kinds = ({ findings }: Diagnosis) => findings.map(({ kind, severity }) => `${severity} ${kind}`)
const at = (path: string) => inLake(rig().root, path)

async function read<T>(look: (ledger: Ledger) => T): Promise<T> {
  using ledger = await Ledger.openToRead(rig().root)
  return look(ledger)
}

const files = async (): Promise<FileEntry[]> => await read((ledger) => liveFiles(ledger, { table: 'points' }))
const largest = async (): Promise<FileEntry> => (await files()).toSorted((a, b) => b.rows - a.rows)[0]!

function loseLedger(): void {
  for (const suffix of ['', '-wal', '-shm']) rmSync(at(`ledger.sqlite${suffix}`), { force: true })
}

/** The lake is whole again: nothing to find, the same points, and a fetch that asks nothing new. */
async function expectSound(): Promise<void> {
  expect((await ask()).findings).toEqual([])
  expect(await rig().stored()).toEqual(sound)
  expect(await rig().fetch(selection)).toMatchObject({ requests: quiet, points_added: 0, files_added: 0 })
}

describe('a sound lake', () => {
  test('has nothing to find and is not changed by looking', async () => {
    const before = await read(dump)
    expect(await ask()).toMatchObject({ findings: [], mended: [], forgotten: null, checked: { thorough: true } })
    expect(await read(dump)).toEqual(before)
    await expectSound()
  })
  test('doctor on a folder without a lake is an error of usage', async () => {
    await expect(ask({}, {}, `${rig().root}/nothing`)).rejects.toMatchObject({ kind: 'usage' })
  })
})

describe('the ledger', () => {
  test('lost: rebuilt from the journal it gives the same answers, and the next fetch asks nothing again', async () => {
    const before = await read(dump)
    loseLedger()
    const found = await ask()
    expect(kinds(found)).toEqual(['damage ledger_lost'])
    expect(found.findings[0]?.remedy).toContain('--rebuild-ledger')
    const healed = await ask({ rebuildLedger: true })
    expect(healed.findings).toEqual([])
    expect(healed.mended.join()).toMatch(/ledger.sqlite was made anew/)
    expect(await read(dump)).toEqual(before)
    await expectSound()
  })
  test('a torn ledger is found and rebuilt from the journal', async () => {
    loseLedger()
    writeFileSync(at('ledger.sqlite'), 'no database, but long enough to be taken for one'.repeat(200))
    expect(kinds(await ask())).toEqual(['damage ledger_torn'])
    expect((await ask({ rebuildLedger: true })).findings).toEqual([])
    await expectSound()
  })
  test('changed behind the back of the journal', async () => {
    await writing(rig().root, (ledger) => ledger.exec('UPDATE series SET points = points + 1 WHERE n = 1'))
    expect(kinds(await ask())).toEqual(['damage ledger_differs'])
    expect((await ask({ rebuildLedger: true })).findings).toEqual([])
    await expectSound()
  })
})

describe('the journal', () => {
  test.each([
    ['lost', (path: string) => rmSync(path), 'damage entry_lost'],
    ['torn', (path: string) => truncateSync(path, 300), 'damage entry_torn'],
  ])(
    'an entry is %s: the sound ledger takes its place, then a lost ledger can be rebuilt too',
    async (_, harm, kind) => {
      harm(at(entryFile(1)))
      expect(kinds(await ask())).toEqual([kind])
      expect(kinds(await ask({ rebuildLedger: true }))).toEqual([kind])
      const healed = await ask({ repair: true })
      expect(healed.findings).toEqual([])
      expect(healed.mended.join()).toContain(`checkpoint of version ${newest}`)
      const before = await read(dump)
      loseLedger()
      expect((await ask({ rebuildLedger: true })).findings).toEqual([])
      expect(await read(dump)).toEqual(before)
      await expectSound()
    },
  )
  test.each([
    ['lost', (path: string) => rmSync(path)],
    ['torn', (path: string) => truncateSync(path, 300)],
  ])('the newest entry is %s, and nothing can be opened', async (_, harm) => {
    harm(at(entryFile(newest)))
    await expect(Ledger.open(rig().root)).rejects.toMatchObject({ kind: 'integrity' })
    expect(kinds(await ask())[0]).toMatch(/^damage entry_(lost|torn)$/)
    expect((await ask({ repair: true })).findings).toEqual([])
    await expectSound()
  })
  test('a sound entry that does not follow the one before it is damage', async () => {
    const { entry } = await readEntry(rig().root, 2)
    writeEntryText(at(entryFile(2)), encodeEntry({ ...entry, previous: '0'.repeat(64) }).text)
    const { findings } = await ask()
    const torn = findings.filter(({ kind }) => kind === 'entry_torn')
    expect(torn.map(({ path, found }) => [path, found])).toEqual([
      [entryFile(2), 'it does not follow the entry before it'],
      ...(newest > 2 ? [[entryFile(3), 'it does not follow the entry before it']] : []),
    ])
  })
  test('entry and ledger lost together: nothing is invented, the copy is named', async () => {
    rmSync(at(entryFile(1)))
    loseLedger()
    const found = await ask({ rebuildLedger: true, repair: true, forgetLost: true })
    expect(kinds(found)).toEqual(['damage entry_lost', 'damage ledger_lost'])
    expect(found.findings[0]?.remedy).toContain('copy')
    expect(filesBelowPoints().every((path) => existsSync(at(path)))).toBe(true)
    cpSync(`${template()}/${entryFile(1)}`, at(entryFile(1)))
    expect((await ask({ rebuildLedger: true })).findings).toEqual([])
    await expectSound()
  })
  test('a torn checkpoint is ignored and written again', async () => {
    await writing(rig().root, async (ledger) => await writeCheckpoint(realDisk, ledger))
    expect((await ask()).findings).toEqual([])
    truncateSync(at(checkpointFile(newest)), 1000)
    expect(kinds(await ask())).toEqual(['damage checkpoint_torn'])
    expect((await ask({ repair: true })).findings).toEqual([])
    await expectSound()
  })
  test('an entry that a checkpoint stands in for is looked at for as long as it is there', async () => {
    await writing(rig().root, async (ledger) => await writeCheckpoint(realDisk, ledger))
    truncateSync(at(entryFile(1)), 300)
    expect((await ask()).findings).toMatchObject([{ kind: 'entry_torn', path: entryFile(1) }])
    rmSync(at(entryFile(1)))
    expect((await ask()).findings).toEqual([])
  })
  test('a lake written by a newer program is left alone', async () => {
    const { entry } = await readEntry(rig().root, newest)
    writeEntryText(at(entryFile(newest)), encodeEntry({ ...entry, schema_version: 99, program: 'pitlake 9.1.0' }).text)
    const found = await ask({ rebuildLedger: true, repair: true, forgetLost: true })
    expect(kinds(found)).toEqual(['damage newer_version'])
    expect(found.findings[0]?.remedy).toMatch(/by a newer pitlake \(pitlake 9\.1\.0\): update pitlake/)
    expect(found.mended).toEqual([])
  })
})

function filesBelowPoints(): string[] {
  return readdirSync(`${template()}/points`, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.parquet'))
    .map((name) => `points/${name}`)
}

describe('a data file', () => {
  const flip = (path: string) => {
    const bytes = readFileSync(path)
    bytes[Math.floor(bytes.length / 2)]! ^= 1
    writeFileSync(path, bytes)
  }
  test.each([
    ['lost', (path: string) => rmSync(path), 'file_lost', true],
    ['torn', (path: string) => truncateSync(path, 500), 'file_torn', true],
    ['changed in one bit', flip, 'file_changed', false],
  ])('a data file that is %s is named, and requested again only once allowed', async (_, harm, kind, seenQuickly) => {
    const file = await largest()
    harm(at(file.path))
    const found = await ask()
    expect(found.findings).toMatchObject([{ kind, severity: 'damage', path: file.path }])
    expect((await ask({ thorough: false })).findings).toHaveLength(seenQuickly ? 1 : 0)
    expect((await ask({ repair: true })).findings).toHaveLength(1)
    const healed = await ask({ forgetLost: true })
    expect(healed.findings.filter(({ severity }) => severity === 'damage')).toEqual([])
    expect(healed.forgotten).toMatchObject({ files: [file.path], points: file.rows })
    const { entry } = await readEntry(rig().root, newest + 1)
    expect(entry).toMatchObject({ job: 'doctor', lost: [{ path: file.path, rows: file.rows }] })
    const series = healed.forgotten?.series.map((part) => part.series) ?? []
    const rows = await read((ledger) => [...loadCoverage(ledger, series).values()].flat())
    expect(rows.filter(({ state, reason }) => state === 'failed' && reason?.startsWith('lost')).length).toBeGreaterThan(
      0,
    )
    const again = await rig().fetch(selection)
    expect(again.points_added).toBe(file.rows)
    expect(again.requests).toBe(series.length + quiet)
    expect(again.violations).toBe(0)
    expect(await rig().stored()).toEqual(sound)
    expect(await read((ledger) => summary(ledger).points)).toBe(sound.length)
    expect((await rig().fetch(selection)).requests).toBe(quiet)
  })

  test('a lost file of two recent ones: points of the second file are not requested again', async () => {
    const [first, second, ...more] = await files()
    expect([first?.metric, second?.metric, more]).toEqual([null, null, []])
    rmSync(at(first!.path))
    const healed = await ask({ forgetLost: true })
    expect(healed.forgotten?.points).toBe(first!.rows)
    const held = await read(storedSeries)
    expect([...held.values()].reduce((sum, { points }) => sum + points, 0)).toBe(second!.rows)
    expect((await rig().fetch(selection)).points_added).toBe(first!.rows)
    expect(await rig().stored()).toEqual(sound)
  })

  test('merged from others that are still there: these come back and nothing is lost', async () => {
    const byMetric = Map.groupBy(await files(), ({ metric }) => metric)
    const two = [...byMetric.values()].find((own) => own.length === 2)!
    const rows = two.reduce((sum, file) => sum + file.rows, 0)
    const { metric, interval } = two[0]!
    const staged = { ...stage(rig().root, 'merged', 'what the merge wrote'), metric, interval, rows }
    const ledger = await Ledger.open(rig().root)
    const { provider } = ledger.head()
    const merge = { job: 'merge', run: 'm', provider: provider!, add: [staged], remove: two.map(({ path }) => path) }
    await commit(ledger, merge, clock)
    ledger.close()
    rmSync(at(staged.path))
    const healed = await ask({ repair: true }, { views })
    expect(healed.findings.filter(({ severity }) => severity === 'damage')).toEqual([])
    expect(healed.mended.join()).toMatch(/replaced by the 2 files/)
    await expectSound()
  })

  test('a lost file of registry history is never forgotten', async () => {
    const path = 'registry/history.products/h.parquet'
    const staged = { ...stage(rig().root, 'h', 'steps'), path, table: 'history.products', metric: null, interval: null }
    const ledger = await Ledger.open(rig().root)
    const { provider } = ledger.head()
    await commit(ledger, { job: 'sync', run: 's', provider: provider!, add: [staged] }, clock)
    ledger.close()
    rmSync(at(path))
    const found = await ask({ forgetLost: true })
    expect(found.forgotten?.files).toEqual([])
    expect(found.findings[0]).toMatchObject({
      kind: 'file_lost',
      path,
      remedy: expect.stringContaining('registry/raw'),
    })
  })

  test('a lost file that already left the view is only reported', async () => {
    const file = await largest()
    const ledger = await Ledger.open(rig().root)
    const { provider } = ledger.head()
    await commit(ledger, { job: 'merge', run: 'm', provider: provider!, remove: [file.path] }, clock)
    ledger.close()
    rmSync(at(file.path))
    expect(kinds(await ask({ repair: true }))).toEqual(['notice file_lost', 'notice views_behind'])
    expect(kinds(await ask({ repair: true }, { views }))).toEqual(['notice file_lost'])
  })
})

describe('around the lake', () => {
  test('orphans and the notes of killed processes are notices, and tidied up', async () => {
    mkdirSync(at('points/metric=x/interval=24h'), { recursive: true })
    writeFileSync(at('points/metric=x/interval=24h/0000000001-left.parquet'), 'x')
    writeFileSync(
      at('locks/metrics.json'),
      JSON.stringify({ pid: 1, host: 'h', command: 'pitlake fetch', since: 5e15 }),
    )
    const found = await ask()
    expect(kinds(found)).toEqual(['notice orphans', 'notice stale_lock'])
    expect(found.findings[1]?.found).toMatch(/process 1 on h \(pitlake fetch\)/)
    expect((await ask({ repair: true })).findings).toEqual([])
    await expectSound()
  })
  test('a lock that is held is no finding', async () => {
    const lock = await tryLock(rig().root, 'metrics', { pid: 1, host: 'h', command: 'c', since: 0 })
    expect((await ask()).findings).toEqual([])
    await lock?.release()
  })
  test('a moved folder is found by what its views name', async () => {
    const moved = `${rig().root}-moved`
    renameSync(rig().root, moved)
    try {
      const found = await ask({}, {}, moved)
      expect(kinds(found)).toEqual(['damage views_moved'])
      expect(found.findings[0]).toMatchObject({
        remedy: 'run pitlake views',
        found: expect.stringContaining(rig().root),
      })
      expect((await ask({ repair: true }, { views }, moved)).findings).toEqual([])
    } finally {
      rmSync(moved, { recursive: true, force: true })
    }
  })
  test.each(['lake.duckdb', 'lake.sql'])('%s is missing and doctor names the command that makes it', async (name) => {
    rmSync(at(name))
    expect((await ask()).findings).toMatchObject([{ kind: 'views_missing', path: name, remedy: 'run pitlake views' }])
    expect((await ask({ repair: true }, { views })).findings).toEqual([])
  })
  test('a missing manifest of the views is a notice that advises pitlake views', async () => {
    rmSync(at(places.manifest))
    expect((await ask()).findings).toMatchObject([
      { kind: 'views_missing', severity: 'notice', path: places.manifest, remedy: 'run pitlake views' },
    ])
  })
  test('without journal and ledger doctor counts all remaining files and judges none', async () => {
    loseLedger()
    rmSync(at(places.journal), { recursive: true })
    const all = readdirSync(rig().root, { recursive: true, encoding: 'utf8' })
    const data = all.filter((path) => path.endsWith('.parquet') && !path.startsWith(places.exports))
    const left = data.map((path) => statSync(at(path)).size)
    const { checked, version, findings } = await ask()
    const bytes = left.reduce((sum, size) => sum + size, 0)
    expect(checked).toEqual({ files: left.length, bytes, thorough: false })
    expect([version, findings.length]).toEqual([0, 1])
  })
  test('a disk that is nearly full is said before it is', async () => {
    const space = async () => ({ free: 50_000_000, total: 1e12 })
    expect((await ask({}, { space })).findings).toMatchObject([
      { kind: 'disk_full', severity: 'notice', found: '50 MB are left on the disk, less than 1,000 MB' },
    ])
    expect((await ask({}, { space: async () => ({ free: 1e9, total: 1e12 }) })).findings).toEqual([])
  })
})
