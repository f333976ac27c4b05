// @module-tag alone
import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { afterEach, expect, vi } from 'vitest'
import { loadCatalogue } from '../../src/catalog/load.ts'
import { resolveSettings } from '../../src/catalog/settings.ts'
import { writeCheckpoint } from '../../src/lake/ledger/checkpoint.ts'
import { commit, noteRunFacts } from '../../src/lake/ledger/commit.ts'
import type { Draft } from '../../src/lake/ledger/draft.ts'
import { liveFiles } from '../../src/lake/ledger/index-queries.ts'
import { Ledger } from '../../src/lake/ledger/ledger.ts'
import { type Destination, folderAt } from '../../src/maintenance/publish/destination.ts'
import { copyLake } from '../../src/maintenance/publish/lake-copy.ts'
import { openDatabase, removeDatabase, replaceDatabase } from '../../src/lake/store/database.ts'
import { realDisk } from '../../src/lake/store/disk.ts'
import { checkpointFile, entryFile, inLake, places } from '../../src/lake/store/layout.ts'
import { type Lock, lockCommit, tryLock } from '../../src/lake/store/lock.ts'
import { mirrorMarker } from '../../src/lake/store/marker.ts'
import { buildViews } from '../../src/query/views/build.ts'
import { readStanding } from '../../src/interfaces/report/status.ts'
import { checkFiles, checkLocks, checkOrphans, checkViews } from '../../src/maintenance/upkeep/findings.ts'
import { checkJournal, checkRuns } from '../../src/maintenance/upkeep/damage-journal.ts'
import { examine } from '../../src/maintenance/upkeep/doctor.ts'
import { isLakeLost } from '../../src/maintenance/upkeep/judgement.ts'
import { commitDeps, draftOf, dump } from '../helpers/lakes/drafts.ts'
import { inFolder } from '../helpers/folders.ts'
import { test } from '../helpers/lake-test.ts'
import type * as Disk from '../../src/lake/store/disk.ts'
import type * as Files from '../../src/lake/store/files.ts'

// Another job acts exactly between two looks of this one.

type Look = 'list' | 'names' | 'facts' | 'seen' | 'size'

/** What another job does once, right after this program has looked at a place, or right before it reads its facts. */
interface Meanwhile {
  readonly look: Look
  readonly place: string
  /** At which of these looks. */
  turn: number
  readonly work: () => unknown
}

const other = vi.hoisted(() => ({
  waits: undefined as Meanwhile | undefined,
  readOnly: false,
  act(look: Look, path: string): unknown {
    const { waits } = this
    if (waits === undefined || waits.look !== look || !path.endsWith(waits.place) || --waits.turn > 0) return undefined
    this.waits = undefined
    return waits.work()
  },
}))

vi.mock('../../src/lake/store/disk.ts', async (original) => {
  const real = await original<typeof Disk>()
  const entriesIn: typeof real.entriesIn = async (path) => {
    const listed = await real.entriesIn(path)
    await other.act('list', path)
    return listed
  }
  const statOf: typeof real.statOf = async (path) => {
    await other.act('facts', path)
    const facts = await real.statOf(path)
    await other.act('seen', path)
    return facts
  }
  const namesIn: typeof real.namesIn = async (path) => {
    const names = await real.namesIn(path)
    await other.act('names', path)
    return names
  }
  const isWritable: typeof real.isWritable = (path) => !other.readOnly && real.isWritable(path)
  return { ...real, entriesIn, namesIn, statOf, isWritable }
})

vi.mock('../../src/lake/store/files.ts', async (original) => {
  const real = await original<typeof Files>()
  const sizeNow: typeof real.sizeNow = (path) => {
    const size = real.sizeNow(path)
    other.act('size', path)
    return size
  }
  return { ...real, sizeNow }
})

function meanwhile(look: Look, place: string, work: () => unknown, turn = 1): void {
  other.waits = { look, place, turn, work }
}

/** What the other job was to do it has done in each test. */
afterEach(() => {
  const { waits } = other
  other.waits = undefined
  if (waits !== undefined) throw new Error(`nobody looked at ${waits.place}, so that the other job did nothing`)
})

/** The name of the n-th file, as this program gives it. */
const data = (n: number): string => `points/metric=m/interval=24h/000000000${n + 1}-f.parquet`

const add = async (ledger: Ledger, n: number): Promise<unknown> => {
  const { add: files = [], ...draft } = draftOf(ledger.root, n, `r${n}`)
  return await commit(ledger, { ...draft, add: files.map((file) => ({ ...file, path: data(n) })) }, commitDeps())
}

const change = async (ledger: Ledger, how: Partial<Draft>): Promise<unknown> => {
  const provider = { metrics: 'sandbox:1', synthetic: true }
  return await commit(ledger, { job: 'test', run: 'c', provider, ...how }, commitDeps())
}

/** A lake of three versions, of which the first two are folded. */
async function foldedLake(root: string): Promise<Ledger> {
  const ledger = await Ledger.open(root)
  for (const n of [0, 1]) await add(ledger, n)
  await writeCheckpoint(realDisk, ledger)
  await add(ledger, 2)
  return ledger
}

/** Folds all of it and takes away what that makes superfluous, as a vacuum or a pull does. */
async function fold(ledger: Ledger): Promise<void> {
  const version = await writeCheckpoint(realDisk, ledger)
  for (let n = 1; n <= version; n++) rmSync(inLake(ledger.root, entryFile(n)), { force: true })
  rmSync(inLake(ledger.root, checkpointFile(2)), { force: true })
}

test('another job that commits while the journal is listed is no damage, and is caught up with next', async ({
  root,
  ledger: beside,
}) => {
  using own = await Ledger.open(root)
  meanwhile('list', places.journal, async () => await add(beside, 0))
  await own.catchUp()
  expect((await own.catchUp()).version).toBe(1)
})

test.each([
  ['what was listed is read', 1],
  ['the entries after a checkpoint are read', 2],
])('a journal that gets a checkpoint before %s is read again', (_, turn) =>
  inFolder(async (root) => {
    using beside = await foldedLake(root)
    meanwhile('list', places.journal, async () => await fold(beside), turn)
    using own = await Ledger.inMemory(root)
    expect(dump(own)).toEqual(dump(beside))
  }),
)

test('an index whose newest entry is folded away while it is proved is no other lake’s', async ({ root }) => {
  using beside = await foldedLake(root)
  // Listed to see whether a lake was begun, to catch up, to read entries, and to prove the last.
  meanwhile('list', places.journal, async () => await fold(beside), 4)
  using own = await Ledger.open(root)
  expect(own.head().version).toBe(3)
})

test('an index is never away while another takes its place', async ({ root }) => {
  ;(await Ledger.open(root)).close()
  const path = inLake(root, places.ledger)
  expect(() => replaceDatabase(`${path}.rebuild-none`, path)).toThrow(/ENOENT/)
  expect(existsSync(path)).toBe(true)
})

test('lines of a run that is folded away after its file was looked at are those that the checkpoint holds', async ({
  root,
  ledger: beside,
}) => {
  await add(beside, 0)
  const line = { after: 1, run: { id: 'old', job: 'fetch', started_at: 7 } }
  mkdirSync(inLake(root, places.runs), { recursive: true })
  const file = inLake(root, 'runs/old.jsonl')
  writeFileSync(file, `${JSON.stringify(line)}\n`)
  meanwhile('size', 'runs/old.jsonl', () => rmSync(file))
  expect((await beside.catchUp()).version).toBe(1)
})

test('doctor repeats its look at a journal that gets a checkpoint meanwhile, and finds no damage', async ({ root }) => {
  using beside = await foldedLake(root)
  meanwhile('list', places.journal, async () => await fold(beside))
  expect(await checkJournal(root)).toMatchObject({ findings: [], broken: [], newest: 3 })
})

test('doctor finds lines of a run in the newest checkpoint, whichever it has listed', async ({
  root,
  ledger: beside,
}) => {
  await add(beside, 0)
  await noteRunFacts(beside, { id: 'old', job: 'fetch', started_at: 7 })
  await add(beside, 1)
  await writeCheckpoint(realDisk, beside)
  await add(beside, 2)
  rmSync(inLake(root, 'runs/old.jsonl'))
  using own = await Ledger.open(root)
  meanwhile('list', places.journal, async () => await fold(beside))
  expect(await checkRuns(own)).toEqual([])
})

test('doctor takes no version for lost that another job makes while it reads the journal', async ({ root }) => {
  using beside = await foldedLake(root)
  // Listed to see whether there is a lake, then to be read.
  meanwhile('list', places.journal, async () => await add(beside, 3), 2)
  const { findings, version } = await examine({ data: root, thorough: true }, commitDeps())
  expect(version).toBe(4)
  expect(findings.map(({ kind }) => kind)).toEqual(['views_missing'])
})

test('doctor misses no file that a vacuum takes away meanwhile', async ({ root }) => {
  using beside = await foldedLake(root)
  const path = liveFiles(beside)[0]?.path ?? ''
  await change(beside, { remove: [path] })
  using own = await Ledger.open(root)
  meanwhile('facts', path, async () => {
    await change(beside, { drop: [path] })
    rmSync(inLake(root, path))
  })
  expect((await checkFiles(own, true)).damaged).toEqual([])
})

test('status counts no file as damaged that a vacuum takes away meanwhile', async ({ root }) => {
  using beside = await foldedLake(root)
  using own = await Ledger.open(root)
  const settings = resolveSettings({ flags: { config: undefined, data: root }, env: {}, cwd: root })
  const damaged = async (): Promise<number> =>
    (await readStanding(own, { settings, catalogue: loadCatalogue(), now: 1, arrivals: false })).standing.files_damaged
  meanwhile('facts', data(0), async () => {
    await change(beside, { remove: [data(0)], drop: [data(0)] })
    rmSync(inLake(root, data(0)))
  })
  expect(await damaged()).toBe(0)
  rmSync(inLake(root, data(1)))
  expect(await damaged()).toBe(1)
})

test('doctor takes no file for an orphan that another job is about to name, or has just named', async ({ root }) => {
  using beside = await foldedLake(root)
  using own = await Ledger.open(root)
  meanwhile('list', 'points', async () => await add(beside, 3))
  expect(await checkOrphans(own)).toEqual([])
  const holder = { ...commitDeps().holder, since: 0 }
  writeFileSync(inLake(root, data(4)), 'moved in by a commit that is under way')
  const lock = await lockCommit(root, holder, commitDeps())
  expect(await checkOrphans(own)).toEqual([])
  await lock.release()
  expect(await checkOrphans(own)).toMatchObject([{ kind: 'orphans', path: data(4) }])
})

test('doctor takes no file for an orphan that a vacuum is taking away', async ({ root }) => {
  using own = await foldedLake(root)
  await change(own, { remove: [data(0)], drop: [data(0)] })
  writeFileSync(inLake(root, data(4)), 'left by a run that was killed')
  const orphans = async (): Promise<string | undefined> => (await checkOrphans(own))[0]?.found
  const lock = await tryLock(root, 'vacuum', { pid: 1, host: 'h', command: 'c', since: 0 })
  expect(await orphans()).toMatch(/^1 file /)
  await lock?.release()
  expect(await orphans()).toMatch(/^2 files /)
})

test('doctor takes an index for sound that another job has only begun, where there is no journal yet', async ({
  root,
}) => {
  const kinds = async (): Promise<string[]> =>
    (await examine({ data: root, thorough: true }, commitDeps())).findings.map(({ kind }) => kind)
  const path = inLake(root, places.ledger)
  openDatabase(path).close()
  expect(await kinds()).toEqual([])
  ;(await foldedLake(root)).close()
  removeDatabase(path)
  openDatabase(path).close()
  expect(await kinds()).toEqual(['ledger_torn', 'views_missing'])
})

test('doctor does not take files of a running pull for orphans', async ({ root }) => {
  using own = await foldedLake(root)
  writeFileSync(inLake(root, data(3)), 'of the next version')
  const holder = { pid: 1, host: 'h', command: 'c', since: 0 }
  const lock = await tryLock(root, 'pull', holder)
  meanwhile('list', 'points/metric=m', async () => await lock?.release(), 2)
  expect(await checkOrphans(own)).toEqual([])
  await lock?.release()
  let late: Lock | undefined
  meanwhile('list', 'points/metric=m', async () => (late = await tryLock(root, 'pull', holder)), 2)
  expect(await checkOrphans(own)).toEqual([])
  await late?.release()
  expect(await checkOrphans(own)).toHaveLength(1)
})

test('doctor takes a mirror whose first pull is at work for no lake that was lost', async ({ root }) => {
  using beside = await foldedLake(root)
  writeFileSync(inLake(root, places.marker), mirrorMarker(beside.head().lake ?? '', true, 'there'))
  for (const place of [places.journal, places.ledger]) rmSync(inLake(root, place), { recursive: true })
  const looking = examine({ data: root, thorough: true }, commitDeps())
  await expect(looking).rejects.toMatchObject({
    kind: 'usage',
    message: expect.stringMatching(/pull.* did not finish/),
  })
})

test('doctor takes no lock for left behind whose job ends while it looks', async ({ root }) => {
  const lock = (await tryLock(root, 'metrics', { pid: 1, host: 'h', command: 'c', since: 0 })) as Lock
  meanwhile('names', places.locks, async () => await lock.release())
  expect(await checkLocks(root)).toEqual([])
})

test('doctor says nothing of views that are being put in place', async ({ root, ledger: own }) => {
  await change(own, { state: { a: 1 } })
  await buildViews(own, { catalogue: loadCatalogue(), deps: commitDeps() })
  rmSync(inLake(root, places.manifest))
  const lock = (await tryLock(root, 'views', { pid: 1, host: 'h', command: 'c', since: 0 })) as Lock
  expect(await checkViews(own, root, false)).toEqual([])
  await lock.release()
  expect(await checkViews(own, root, false)).toMatchObject([{ kind: 'views_missing', path: places.manifest }])
})

test('a lake that another job begins is not lost', async ({ root }) => {
  meanwhile('list', places.journal, async () => {
    using beside = await Ledger.open(root)
    for (const n of [0, 1]) await add(beside, n)
  })
  expect(await isLakeLost(root)).toBe(false)
})

test('if a reader cannot write, it reads the index with the log of the current writer', async ({ root }) => {
  using beside = await foldedLake(root)
  beside.exec('PRAGMA wal_checkpoint(TRUNCATE)')
  other.readOnly = true
  try {
    using own = await Ledger.openToRead(root)
    expect(own.head().version).toBe(3)
    await add(beside, 3)
    beside.exec('PRAGMA wal_checkpoint(TRUNCATE)')
    expect([own.head().version, dump(own)['versions']?.length]).toEqual([4, 4])
  } finally {
    other.readOnly = false
  }
})

const copyInto = async (root: string, from: Destination): Promise<unknown> => {
  const to = folderAt(`${root}/copy`, { disk: realDisk, mark: 'c' })
  const input = { from, to, mirrorOf: () => from.uri, scratch: `${root}/scratch`, near: true }
  return await copyLake(input, { signal: new AbortController().signal })
}

test('a lake is copied though its journal is folded between the names in it and their files', async ({ root }) => {
  using beside = await foldedLake(`${root}/lake`)
  meanwhile('list', 'lake/journal', async () => {
    await writeCheckpoint(realDisk, beside)
    for (const gone of [entryFile(1), entryFile(2), checkpointFile(2)]) rmSync(inLake(beside.root, gone))
  })
  expect(await copyInto(root, folderAt(beside.root, { disk: realDisk, mark: 'f' }))).toMatchObject({ version: 3 })
})

test('a lake is copied though a file leaves it that was looked at', async ({ root }) => {
  using beside = await foldedLake(`${root}/lake`)
  const path = liveFiles(beside)[0]?.path ?? ''
  meanwhile('seen', `lake/${path}`, async () => {
    await change(beside, { remove: [path], drop: [path] })
    rmSync(inLake(beside.root, path))
  })
  const from = folderAt(beside.root, { disk: realDisk, mark: 'f' })
  expect(await copyInto(root, from)).toMatchObject({ version: 4 })
})
