import { expect, vi } from 'vitest'
import type { Catalogue } from '../../src/catalog/catalogue.ts'
import { loadCatalogue } from '../../src/catalog/load.ts'
import { readCheckpoint, writeCheckpoint } from '../../src/lake/ledger/checkpoint.ts'
import { applyFacts, setMeta } from '../../src/lake/ledger/apply.ts'
import { commit } from '../../src/lake/ledger/commit.ts'
import type { Draft } from '../../src/lake/ledger/draft.ts'
import { Ledger } from '../../src/lake/ledger/ledger.ts'
import { appendFacts, readFacts } from '../../src/lake/ledger/run-facts.ts'
import { type Disk, realDisk } from '../../src/lake/store/disk.ts'
import { checkViews } from '../../src/maintenance/upkeep/findings.ts'
import { examine } from '../../src/maintenance/upkeep/doctor.ts'
import { vacuum } from '../../src/maintenance/upkeep/vacuum.ts'
import { buildViews, tellViews } from '../../src/query/views/build.ts'
import { pulled } from '../helpers/mirrors.ts'
import { commitDeps, draftOf, dump, requestRow } from '../helpers/lakes/drafts.ts'
import { test } from '../helpers/lake-test.ts'

// The index is one file for all processes: whoever opens the lake brings it up to what another job has just committed.

const catalogue = loadCatalogue()

/** A version without a file. */
const news = (root: string, n: number): Draft => ({ ...draftOf(root, n, `r${n}`), add: [], progress: [] })

/** Does the work once, at the first step of the disk that bears the name. */
function atFirst(step: 'syncFolder' | 'write', work: () => Promise<unknown>): { disk: Disk; done: () => boolean } {
  let due: typeof work | undefined = work
  const act = async (): Promise<void> => {
    const now = due
    due = undefined
    await now?.()
  }
  const disk: Disk = {
    ...realDisk,
    [step]: async (path: string, text: string) => {
      await act()
      await realDisk[step](path, text)
    },
  }
  return { disk, done: () => due === undefined }
}

test('views show one version, even if a job commits while they are compiled', async ({ root, ledger: own }) => {
  using other = await Ledger.open(root)
  await commit(own, news(root, 0), commitDeps())
  const { disk, done } = atFirst('syncFolder', async () => await commit(other, news(root, 1), commitDeps()))
  const told = await tellViews(own, { catalogue, deps: commitDeps({ disk }) })
  expect(done()).toBe(true)
  expect(told.manifest.version).toBe(1)
  expect((await tellViews(own, { catalogue, deps: commitDeps() })).manifest.version).toBe(2)
  await commit(own, news(root, 2), commitDeps())
})

/** The index, with something that happens before a table is read. */
function whenReading(ledger: Ledger, table: string, work: () => void): Parameters<typeof writeCheckpoint>[1] {
  return {
    root: ledger.root,
    head: () => ledger.head(),
    tables: () => ledger.tables(),
    exec: (sql) => ledger.exec(sql),
    rollBack: () => ledger.rollBack(),
    statement: (sql) => ledger.statement(sql),
    rowsOf: (name) => {
      if (name === table) work()
      return ledger.rowsOf(name)
    },
  }
}

const request = requestRow('q', { run: 'fetch-1' })

test('a checkpoint holds each line of a run whole or not at all, also one that another process takes in meanwhile', async ({
  root,
  ledger: own,
}) => {
  using other = await Ledger.open(root)
  await commit(own, news(root, 0), commitDeps())
  const line = { after: 1, requests: [request] }
  await appendFacts(realDisk, root, 'fetch-1', [line])
  const [placed] = await readFacts(root, () => 0)
  const takeIn = (): void => other.transaction(() => placed && applyFacts(other, placed))
  await writeCheckpoint(realDisk, whenReading(own, 'run_files', takeIn))
  expect(dump(own)['requests']).toHaveLength(1)
  using again = await Ledger.inMemory(root)
  expect(dump(again)).toEqual(dump(own))
})

test('a checkpoint never sets back an index that a second process has updated', async ({ root, ledger: own }) => {
  await commit(own, news(root, 0), commitDeps())
  await writeCheckpoint(realDisk, own)
  await commit(own, news(root, 1), commitDeps())
  const before = dump(own)
  await readCheckpoint(root, 1, own)
  expect(dump(own)).toEqual(before)
})

test('a vacuum leaves exports alone that views name again which are made meanwhile', async ({ root, ledger: own }) => {
  const one = { metricAsset: 'BTC', productId: 'p', chainId: null, address: null, from: null, until: null }
  const others = { ...catalogue, links: [...catalogue.links, one] }
  const built = async (catalogue: Catalogue): Promise<unknown> =>
    await buildViews(own, { catalogue, deps: commitDeps() })
  await commit(own, news(root, 0), commitDeps())
  await built(catalogue)
  await commit(own, news(root, 1), commitDeps())
  await built(others)
  let due = true
  const syncFolder = async (path: string): Promise<void> => {
    if (path.endsWith('journal') && due) {
      due = false
      await built(catalogue)
    }
    await realDisk.syncFolder(path)
  }
  const buildAgain = async (): Promise<unknown> => await built(others)
  const deps = { ...commitDeps({ disk: { ...realDisk, syncFolder } }), buildViews: buildAgain }
  await vacuum({ root, keepSeconds: 0, really: true }, deps)
  expect(due).toBe(false)
  expect(await checkViews(own, root, true)).toEqual([])
})

test('the head of the index is that of one version, even if a second process updates it meanwhile', async ({
  root,
  ledger: own,
}) => {
  using other = await Ledger.open(root)
  await commit(own, news(root, 0), commitDeps())
  const { digest } = own.head()
  let looks = 0
  const real = own.statement.bind(own)
  vi.spyOn(own, 'statement').mockImplementation((sql) => {
    if (sql.includes('FROM meta') && ++looks === 3)
      other.transaction(() => {
        setMeta(other, 'version', 2)
        setMeta(other, 'digest', 'two')
      })
    return real(sql)
  })
  const head = own.head()
  expect([
    { version: 1, digest },
    { version: 2, digest: 'two' },
  ]).toContainEqual({ version: head.version, digest: head.digest })
})

test('a mirror can be opened from its first entry on, while its pull is running', async ({ root }) => {
  const source = `${root}/lake`
  const mirror = `${root}/mirror`
  {
    using ledger = await Ledger.open(source)
    for (const n of [0, 1]) await commit(ledger, news(source, n), commitDeps())
  }
  const seen: number[] = []
  const claim = async (from: string, to: string): Promise<boolean> => {
    const made = await realDisk.claim(from, to)
    if (!to.startsWith(`${mirror}/journal/`)) return made
    const { findings } = await examine({ data: mirror, thorough: true }, commitDeps())
    // A part of a copy is older than the lake that it is made from.
    expect(findings.map(({ kind }) => kind).filter((kind) => kind !== 'copy_behind')).toEqual(['views_missing'])
    using reader = await Ledger.open(mirror)
    seen.push(reader.head().version)
    return made
  }
  expect(await pulled(mirror, source, { disk: { ...realDisk, claim } })).toMatchObject({ version: 2 })
  expect(seen).toEqual([1, 2])
})
