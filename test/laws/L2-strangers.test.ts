import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, expect } from 'vitest'
import { moveFound } from '../../src/maintenance/upkeep/judgement.ts'
import { commit } from '../../src/lake/ledger/commit.ts'
import { realDisk } from '../../src/lake/store/disk.ts'
import { readEntry } from '../../src/lake/ledger/journal.ts'
import { inLake } from '../../src/lake/store/layout.ts'
import { Ledger } from '../../src/lake/ledger/ledger.ts'
import { findOrphans, openSpool, sweep } from '../../src/lake/ledger/spool-sweep.ts'
import { withRig } from '../helpers/fetching.ts'
import { withPreset } from '../helpers/lakes/written-by-jobs.ts'
import { filesIn } from '../helpers/key-search.ts'
import { commitDeps, draftOf } from '../helpers/lakes/drafts.ts'
import { test } from '../helpers/lake-test.ts'
import { examined, failure } from '../helpers/looking.ts'

const selection = { assets: ['BTC'], paths: ['supply/current_pit'], intervals: ['24h' as const], since: 1_709_000_000 }
const now = 1_709_300_000

function put(root: string, path: string, text = 'mine'): void {
  mkdirSync(dirname(join(root, path)), { recursive: true })
  writeFileSync(join(root, path), text)
}

/** Every file below a folder with its text, but for what locking leaves. */
function content(root: string): Record<string, string> {
  const told = filesIn(root).filter((path) => !path.startsWith('locks'))
  return Object.fromEntries(told.map((path) => [`/${path}`, readFileSync(join(root, path), 'latin1')]))
}

const code = async (work: () => Promise<unknown>): ReturnType<typeof failure> => await failure(work())

describe('a folder with names of the layout that nobody of ours made', () => {
  const strangers: readonly (readonly [string, string])[] = [
    ['points/photo.jpg', 'points'],
    ['points/metric=x/interval=24h/table.parquet', 'points'],
    ['assets/logo.svg', 'assets'],
    ['registry/domains/list.txt', 'registry'],
    ['journal/monday.md', 'journal'],
    ['journal/0000000001.json.gz/draft.md', 'journal'],
    ['exports/out.csv', 'exports'],
    ['stamps/blue-mauritius.png', 'stamps'],
    ['spool/thread.txt', 'spool'],
    ['runs/marathon.gpx', 'runs'],
    ['quarantine/rules.txt', 'quarantine'],
    ['lake.duckdb', 'lake.duckdb'],
    ['lake.sql', 'lake.sql'],
    ['ledger.sqlite', 'ledger.sqlite'],
  ]
  test.each(strangers)('%s: no lake is begun there, exit 2, and it stays as it is', (path, told) =>
    withRig(now, async ({ fetch, root }) => {
      put(root, path)
      const before = content(root)
      const [exit, message] = await code(async () => await fetch(selection))
      expect([exit, message]).toEqual([2, expect.stringContaining(join(root, told))])
      expect(content(root)).toEqual(before)
    }),
  )

  test("another program's ledger.sqlite gets no table of ours", async ({ root }) => {
    const own = new DatabaseSync(join(root, 'ledger.sqlite'))
    own.exec('CREATE TABLE accounts (id INTEGER); CREATE TABLE meta (k TEXT)')
    own.close()
    const before = content(root)
    expect((await code(async () => await Ledger.open(root)))[0]).toBe(2)
    expect(content(root)).toEqual(before)
  })

  test('a link in place of a folder of the layout is not followed, and not taken for one', async ({ root: home }) => {
    const root = join(home, 'lake')
    put(home, 'elsewhere/0000000001-x.parquet')
    mkdirSync(root)
    symlinkSync(join(home, 'elsewhere'), join(root, 'assets'))
    expect((await code(async () => await Ledger.open(root)))[0]).toBe(2)
    expect(existsSync(join(home, 'elsewhere/0000000001-x.parquet'))).toBe(true)
  })

  test('a README, a page, empty folders and folders of other names are no hindrance', () =>
    withRig(now, async ({ fetch, root }) => {
      for (const path of ['README.md', 'status.html', 'notes/points/x.txt', '.git/config']) put(root, path)
      mkdirSync(join(root, 'points'))
      expect((await fetch(selection)).points_added).toBeGreaterThan(0)
      for (const path of ['README.md', 'status.html', 'notes/points/x.txt', '.git/config'])
        expect(readFileSync(join(root, path), 'utf8')).toBe('mine')
    }))
})

describe('sweeping in a lake', () => {
  const foreign = [
    'points/photo.jpg',
    'points/metric=a/interval=24h/x.parquet',
    'points/metric=a/interval=24h/0000000001-x.txt',
    'assets/2024-report.parquet',
    'registry/products/0000000001.parquet',
    'registry/raw/notes.md',
    'journal/.tmp-mine',
    'spool/yarn/ball.txt',
    'spool/20240301t060000004z-7.tar',
  ]
  const ours = [
    'points/metric=a/interval=24h/0000000002-20240301t060000004z-7.parquet',
    'points/recent/0000000002-20240301t060000004z-7.parquet',
    'assets/0000000001-r.parquet',
    'registry/products/snapshot_date=2024-03-01/0000000001-r-base.parquet',
    'registry/raw/snapshot/0000000001-r.json.zst',
    'journal/.tmp-2-r',
    'journal/.tmp-checkpoint-9',
    'spool/20240301t060000004z-7/part.json',
  ]

  test('sweeping removes names of its pattern only, and no file of a version that the journal has not reached', async ({
    root,
    ledger,
  }) => {
    await commit(ledger, draftOf(root, 0), commitDeps())
    const later = 'points/metric=a/interval=24h/0000000003-r.parquet'
    for (const path of [...foreign, ...ours, later]) put(root, path)
    const paths = await sweep(ledger, commitDeps())
    expect(paths.toSorted()).toEqual(ours.map((path) => path.replace('/part.json', '')).toSorted())
    for (const path of [...foreign, later]) expect(readFileSync(join(root, path), 'utf8')).toBe('mine')
  })

  test('follows no link, whether the folder or a file in it is one', async ({ root: home }) => {
    const root = join(home, 'lake')
    using ledger = await Ledger.open(root)
    await commit(ledger, draftOf(root, 0), commitDeps())
    put(home, 'other/snapshot/0000000001-r.json.zst')
    put(home, 'other/20240301t060000004z-7/part.json')
    mkdirSync(join(root, 'registry'))
    symlinkSync(join(home, 'other'), join(root, 'registry/raw'))
    symlinkSync(join(home, 'other/snapshot'), join(root, 'assets'))
    rmSync(join(root, 'spool'), { recursive: true, force: true })
    symlinkSync(join(home, 'other'), join(root, 'spool'))
    symlinkSync(join(home, 'other/snapshot/0000000001-r.json.zst'), join(root, 'points/0000000001-r.parquet'))
    expect(await sweep(ledger, commitDeps())).toEqual([])
    expect(Object.keys(content(join(home, 'other')))).toHaveLength(2)
  })

  test('is left to the lake whose marker the folder bears', async ({ root, ledger }) => {
    await commit(ledger, draftOf(root, 0), commitDeps())
    put(root, 'assets/0000000001-r.parquet')
    expect(await findOrphans(ledger)).toEqual(['assets/0000000001-r.parquet'])
    put(root, 'lake.json', JSON.stringify({ lake: 'f'.repeat(32) }))
    expect(await findOrphans(ledger)).toEqual([])
    const [exit, message] = await code(async () => await commit(ledger, draftOf(root, 1), commitDeps()))
    expect([exit, message]).toEqual([2, expect.stringContaining('lake.json')])
  })

  test('takes the spool of a run that was killed before the first commit, by its lock', async ({ root, ledger }) => {
    const spool = await openSpool(root, 'r', commitDeps())
    put(root, spool.path('x'))
    expect(await sweep(ledger, commitDeps())).toEqual([])
    await spool.close()
    put(root, 'spool/r/x')
    put(root, 'locks/spool-r.lock', '')
    expect(await sweep(ledger, commitDeps())).toEqual(['spool/r'])
  })
})

describe('the marker', () => {
  test('comes with the first commit, before any file, and never changes', async ({ root }) => {
    const ledger = await Ledger.open(root)
    expect(existsSync(join(root, 'lake.json'))).toBe(false)
    const dying = { ...realDisk, move: async (): Promise<never> => await Promise.reject(new Error('killed')) }
    await expect(commit(ledger, draftOf(root, 0), commitDeps({ disk: dying }))).rejects.toThrow('killed')
    const marker = readFileSync(join(root, 'lake.json'), 'utf8')
    put(root, 'points/metric=m%2Fx/interval=24h/0000000001-left.parquet')
    ledger.close()
    using again = await Ledger.open(root)
    await sweep(again, commitDeps())
    expect(existsSync(join(root, 'points/metric=m%2Fx/interval=24h/0000000001-left.parquet'))).toBe(false)
    await commit(again, draftOf(root, 1), commitDeps())
    expect(JSON.parse(marker)).toMatchObject({ lake: (await readEntry(root, 1)).entry.lake })
    await commit(again, draftOf(root, 2), commitDeps())
    expect(readFileSync(join(root, 'lake.json'), 'utf8')).toBe(marker)
  })

  test('a lake that lost its marker is not swept until its next commit writes the marker', () =>
    withPreset('plain', async (root, _home, facts) => {
      using ledger = await Ledger.open(root)
      rmSync(join(root, 'lake.json'))
      put(root, 'assets/0000000001-r.parquet')
      expect(await sweep(ledger, commitDeps())).toEqual([])
      expect(existsSync(join(root, 'lake.json'))).toBe(false)
      const provider = ledger.head().provider ?? { synthetic: true }
      await commit(ledger, { job: 'test', run: 'r', provider, state: { n: 1 } }, commitDeps())
      expect(JSON.parse(readFileSync(join(root, 'lake.json'), 'utf8'))).toMatchObject({ lake: facts.lake })
      expect(await sweep(ledger, commitDeps())).toEqual(['assets/0000000001-r.parquet'])
    }))
})

test.each(['plain', 'registry', 'both'] as const)(
  'lake %s without journal and ledger: no job starts a new lake over the data, exit 4',
  (name) =>
    withPreset(name, async (root, _home, facts) => {
      rmSync(inLake(root, 'journal'), { recursive: true })
      rmSync(inLake(root, 'ledger.sqlite'))
      rmSync(join(root, 'lake.json'))
      const before = content(root)
      for (const marked of [false, true]) {
        if (marked) put(root, 'lake.json', JSON.stringify({ lake: facts.lake }))
        const [exit, message] = await code(async () => await Ledger.open(root))
        expect([exit, message]).toEqual([4, expect.stringContaining('run pitlake doctor')])
      }
      rmSync(join(root, 'lake.json'))
      expect(content(root)).toEqual(before)
    }),
)

test('a journal that was lost with its newest entries: their files are no orphans', () =>
  withPreset('registry', async (root) => {
    rmSync(inLake(root, 'journal/0000000002.json.gz'))
    rmSync(inLake(root, 'journal/0000000003.json.gz'))
    rmSync(inLake(root, 'ledger.sqlite'))
    using ledger = await Ledger.rebuild(root)
    expect(ledger.head().version).toBe(1)
    const paths = await sweep(ledger, commitDeps())
    expect(paths.filter((path) => path.includes('0000000003-'))).toEqual([])
  }))

describe('doctor, where journal and ledger are lost', () => {
  const look = async (root: string, repair: boolean) =>
    await examined(root, now, { rebuildLedger: repair, repair, forgetLost: repair })

  test.each(['plain', 'registry', 'both'] as const)(
    'the lake %s is recognised by its footers, and moved whole',
    (name) =>
      withPreset(name, async (root, _home, facts) => {
        rmSync(join(root, 'lake.json'))
        rmSync(inLake(root, 'journal'), { recursive: true })
        rmSync(inLake(root, 'ledger.sqlite'))
        put(root, 'README.md')
        put(root, 'points/photo.jpg')
        const before = content(root)
        const { findings } = await look(root, false)
        expect(findings.map(({ kind, severity }) => `${severity} ${kind}`)).toEqual(['damage journal_lost'])
        expect(findings[0]?.found).toContain(facts.lake)
        expect(findings[0]?.remedy).toContain('--repair')
        expect(content(root)).toEqual(before)
        const mended = await look(root, true)
        expect([mended.findings, mended.mended]).toEqual([[], [expect.stringContaining('found-20240301t133320000z/')]])
        const moved = Object.fromEntries(
          Object.entries(content(root)).map(([path, text]) => [path.replace('/found-20240301t133320000z', ''), text]),
        )
        expect(moved).toEqual(before)
        expect(existsSync(join(root, 'README.md'))).toBe(true)
        // A new lake can be begun there, and what was found stays.
        const ledger = await Ledger.open(root)
        await commit(ledger, draftOf(root, 0), commitDeps())
        await sweep(ledger, commitDeps())
        ledger.close()
        for (const [path, text] of Object.entries(before))
          if (!['/README.md', '/status.html'].includes(path))
            expect(readFileSync(join(root, 'found-20240301t133320000z', path), 'latin1')).toBe(text)
      }),
  )

  test('also where a file is damaged, and where moving was killed on the way', () =>
    withPreset('plain', async (root) => {
      rmSync(inLake(root, 'journal'), { recursive: true })
      rmSync(inLake(root, 'ledger.sqlite'))
      put(root, 'points/recent/0000000009-20240301t060000004z-7.parquet', 'torn')
      expect((await look(root, false)).findings[0]?.found).toMatch(/up to version 9/)
      const files = Object.keys(content(root)).length
      let moves = 0
      const disk = {
        ...realDisk,
        move: async (from: string, to: string): Promise<void> => {
          if (++moves > 3) throw new Error('killed')
          await realDisk.move(from, to)
        },
      }
      const deps = commitDeps({ nowMicros: () => now * 1_000_000, disk })
      await expect(moveFound(root, deps)).rejects.toThrow('killed')
      expect((await look(root, true)).findings).toEqual([])
      expect(Object.keys(content(root))).toHaveLength(files)
      expect(readdirSync(root)).not.toContain('points')
    }))

  test('a first commit that was killed is none of these', async ({ root }) => {
    const ledger = await Ledger.open(root)
    const dying = { ...realDisk, move: async (): Promise<never> => await Promise.reject(new Error('killed')) }
    await expect(commit(ledger, draftOf(root, 0), commitDeps({ disk: dying }))).rejects.toThrow('killed')
    ledger.close()
    put(root, 'points/metric=m%2Fx/interval=24h/0000000001-left.parquet')
    expect((await look(root, true)).findings.map(({ kind }) => kind)).not.toContain('journal_lost')
    expect(readdirSync(root).filter((name) => name.startsWith('found'))).toEqual([])
  })
})

test('an empty ledger and a marker next to data of later versions do not pass for a killed first commit', () =>
  withPreset('registry', async (root, home, facts) => {
    rmSync(inLake(root, 'journal'), { recursive: true })
    rmSync(inLake(root, 'ledger.sqlite'))
    ;(await Ledger.open(join(home, 'empty'))).close()
    cpSync(join(home, 'empty/ledger.sqlite'), inLake(root, 'ledger.sqlite'))
    put(root, 'lake.json', JSON.stringify({ lake: facts.lake }))
    expect((await code(async () => await Ledger.open(root)))[0]).toBe(4)
  }))
