import { existsSync, readdirSync, readFileSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { mergeSmallFiles } from '../../src/upkeep/compact.ts'
import { vacuum } from '../../src/upkeep/vacuum.ts'
import { writeCheckpoint } from '../../src/ledger/checkpoint.ts'
import { sha256File } from '../../src/ledger/commit.ts'
import { checkViews } from '../../src/upkeep/damage-files.ts'
import { type Disk, realDisk } from '../../src/store/disk.ts'
import { liveFiles } from '../../src/ledger/held.ts'
import { entryFile, inLake } from '../../src/store/layout.ts'
import { Ledger } from '../../src/ledger/ledger.ts'
import { buildViews } from '../../src/views/build.ts'
import { openQuery } from '../../src/query/lake.ts'
import { inFolder } from '../helpers/lakes.ts'
import { metrics, rewriteDeps, topUp } from '../helpers/merging.ts'
import { PowerCut, type PowerDisk, powerDisk } from '../helpers/power.ts'
import { catalogue } from '../helpers/sandbox-client.ts'

const unforced: Disk = { ...realDisk, sync: async () => undefined, syncFolder: async () => undefined }

type Deps = ReturnType<typeof rewriteDeps>

/** A new lake, three top-ups, a merge, the views, a vacuum; `done` holds the version that each step had reached. */
async function work(root: string, deps: Deps, done: number[]): Promise<void> {
  const ledger = await Ledger.open(root)
  const said = async (): Promise<void> => void done.push((await ledger.catchUp()).version)
  try {
    for (let n = 0; n < 3; n++) {
      await topUp(ledger, deps, { metric: metrics[0], since: n * 10, days: 10 })
      await said()
    }
    await buildViews(ledger, { catalogue, deps })
    await mergeSmallFiles(ledger, deps)
    await said()
    await buildViews(ledger, { catalogue, deps })
    await writeCheckpoint(deps.disk ?? powerDisk(), ledger)
    deps.clock.now += 100
    const views = async (open: Ledger): Promise<unknown> => await buildViews(open, { catalogue, deps })
    await vacuum({ root, keepSeconds: 0, really: true }, { ...deps, buildViews: views })
    await said()
  } finally {
    ledger.close()
  }
}

/** After the cut: every version that was told is there, every file that it names is whole, and the views read. */
async function expectWhole(found: string, told: number): Promise<void> {
  const ledger = existsSync(inLake(found, 'journal')) ? await Ledger.rebuild(found) : await Ledger.open(found)
  expect(ledger.head().version).toBeGreaterThanOrEqual(told)
  if (ledger.head().version === 0) return ledger.close()
  for (const file of liveFiles(ledger)) expect(await sha256File(inLake(found, file.path))).toBe(file.sha256)
  await buildViews(ledger, { catalogue, deps: rewriteDeps() })
  ledger.close()
  const session = await openQuery(found)
  const rows = await session.rows('SELECT count(*) AS n FROM points')
  for (const view of ['requests', 'runs', 'coverage', 'versions'])
    await session.rows(`SELECT count(*) AS n FROM ${view}`)
  session.close()
  // Two assets, ten days a top-up; merging and vacuuming bring none.
  expect(Number(rows[0]?.['n'])).toBeGreaterThanOrEqual(Math.min(told, 3) * 20)
}

/** What was made for readers is there whole before anybody makes it anew. */
async function expectReady(root: string, found: string): Promise<void> {
  const script = readFileSync(join(root, 'lake.sql'), 'utf8')
  const exports = [...script.matchAll(/\/(exports\/[\w.-]+\.parquet)'/g)].map((match) => match[1] ?? '')
  expect(exports.length).toBeGreaterThan(6)
  for (const path of ['lake.sql', 'lake.duckdb', ...exports])
    expect([path, await sha256File(join(found, path))]).toEqual([path, await sha256File(join(root, path))])
}

/** A cut, what it was told as, or the first of several: what is closed after it fails by it, too. */
function isCut(error: unknown): boolean {
  if (error instanceof SuppressedError) return isCut(error.suppressed)
  return error instanceof PowerCut || (error instanceof Error && error.cause instanceof PowerCut)
}

async function cutAt(root: string, disk: PowerDisk): Promise<boolean> {
  const told: number[] = []
  const ended = await work(join(root, 'new', 'lake'), rewriteDeps({ disk }), told).then(
    () => true,
    (error: unknown) => {
      if (isCut(error)) return false
      throw error
    },
  )
  const found = join(root, 'found', 'new', 'lake')
  disk.survivors(join(root, 'new', 'lake'), found)
  if (ended) await expectReady(join(root, 'new', 'lake'), found)
  await expectWhole(found, told.at(-1) ?? 0)
  return ended
}

describe('L3: a power cut', () => {
  test('at any step of the disk loses no version that was told, and what was made for readers mends', async () => {
    const whole = powerDisk()
    await inFolder(async (root) => expect(await cutAt(root, whole)).toBe(true))
    const every = Math.max(1, Math.floor(whole.steps() / 8))
    for (let step = 2; step < whole.steps(); step += every)
      await inFolder(async (root) => expect(await cutAt(root, powerDisk(step))).toBe(false))
  })

  test('a new lake is found again in folders that were made for it, or that a killed run left', async () => {
    for (const left of [false, true])
      await inFolder(async (root) => {
        const disk = powerDisk()
        const lake = join(root, 'a', 'b', 'lake')
        const ledger = await Ledger.open(lake)
        // A run that was killed before it forced anything to the disk leaves folders that are there all the same.
        if (left) await topUp(ledger, rewriteDeps({ disk: unforced }), { metric: metrics[0], since: 0, days: 10 })
        const { version } = ledger.head()
        await topUp(ledger, rewriteDeps({ disk }), { metric: metrics[0], since: 10, days: 10 })
        const own = liveFiles(ledger).filter(({ added_version }) => added_version > version)
        const files = own.map(({ path }) => path)
        expect(files).not.toEqual([])
        ledger.close()
        const found = join(root, 'found')
        disk.survivors(join(root, 'a'), found)
        for (const path of [entryFile(version + 1), ...files])
          expect(existsSync(inLake(join(found, 'b', 'lake'), path))).toBe(true)
      })
  })
})

describe('what a power cut may have torn', () => {
  const made = async (test: (root: string, ledger: Ledger) => Promise<void>): Promise<void> =>
    await inFolder(async (root) => {
      const ledger = await Ledger.open(root)
      await topUp(ledger, rewriteDeps(), { metric: metrics[0], since: 0, days: 10 })
      await buildViews(ledger, { catalogue, deps: rewriteDeps() })
      await test(root, ledger)
      ledger.close()
    })
  const readable = async (root: string): Promise<void> => {
    const session = await openQuery(root)
    for (const view of ['points', 'requests', 'runs', 'versions', 'coverage', 'endpoints'])
      await session.rows(`SELECT count(*) AS n FROM ${view}`)
    session.close()
  }

  test.each([
    ['cut', (path: string) => truncateSync(path, 20_000)],
    ['empty', (path: string) => truncateSync(path, 0)],
    ['noise', (path: string) => writeFileSync(path, 'x'.repeat(300_000))],
  ])('lake.duckdb is %s: named, and mended by whoever makes the views next', async (_, tear) =>
    made(async (root, ledger) => {
      tear(join(root, 'lake.duckdb'))
      expect((await checkViews(ledger, root, false)).map(({ kind }) => kind)).toEqual(['views_torn'])
      await expect(openQuery(root)).rejects.toThrow(/pitlake views/)
      expect((await buildViews(ledger, { catalogue, deps: rewriteDeps() })).made).toBe(true)
      expect(await checkViews(ledger, root, true)).toEqual([])
      await readable(root)
    }),
  )

  test.each(['cut', 'empty', 'noise'])(
    'every export is %s: named, and mended by whoever makes the views next',
    async (how) =>
      made(async (root, ledger) => {
        const folder = inLake(root, 'exports')
        const names = readdirSync(folder).toSorted()
        for (const name of names) {
          const path = join(folder, name)
          if (how === 'noise') writeFileSync(path, 'x'.repeat(2000))
          else truncateSync(path, how === 'cut' ? 100 : 0)
        }
        const found = await checkViews(ledger, root, true)
        expect(new Set(found.map(({ kind }) => kind))).toEqual(new Set(['file_changed']))
        // What readers noted of their proofs is made anew without a word.
        const exports = names.filter((name) => name.endsWith('.parquet'))
        expect(found.map(({ path }) => path.slice('exports/'.length)).toSorted()).toEqual(exports)
        await buildViews(ledger, { catalogue, deps: rewriteDeps() })
        expect(await checkViews(ledger, root, true)).toEqual([])
        await readable(root)
      }),
  )
})
