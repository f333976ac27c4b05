import { hash } from 'node:crypto'
import pLimit from 'p-limit'
import { withCleanup } from '../../base/cleanup.ts'
import { LakeError, usage } from '../../base/errors.ts'
import { writeCheckpoint } from '../../lake/ledger/checkpoint.ts'
import { liveFiles } from '../../lake/ledger/index-queries.ts'
import { isFolded, type Listing, readEntry } from '../../lake/ledger/journal.ts'
import type { Ledger } from '../../lake/ledger/ledger.ts'
import { listStamps, readStamp, type StampedFile, stampFile } from '../../lake/ledger/stamps.ts'
import { makeFolder, namesIn, realDisk } from '../../lake/store/disk.ts'
import { readBytes, sizeOf } from '../../lake/store/files.ts'
import { checkpointFile, dataVersion, entryFile, inLake, places } from '../../lake/store/layout.ts'
import { mirrorMarker, parseMarker } from '../../lake/store/marker.ts'
import { recordedHeadFiles } from '../../trust/heads/stored.ts'
import { comparedAt, unlike } from './commit.ts'
import { type Destination, type Published, stopAt } from './destination.ts'
import {
  type StagedJournal,
  atOnce,
  inPlace,
  journalAt,
  newestDigest,
  stageJournal,
  unsoundAt,
  Vanished,
  versionDigest,
} from './lake-journal.ts'

/** Source and target of a copy. */
interface CopyInput {
  readonly from: Destination
  readonly to: Destination
  /** Last version to copy. */
  readonly until?: number
  /** Returns the source that the copy's marker names. */
  readonly mirrorOf: (lake: string) => string
  /** Empty folder of this machine for files in transfer; each try gets a folder in it. */
  readonly scratch: string
  /** Whether the target is on this machine: its part of the journal need not travel. */
  readonly near: boolean
  /** Whether existing files are read and compared, too, not only their sizes. */
  readonly thorough?: boolean
  /** Called when all but the journal is copied: from then on the target is a lake to its readers. */
  readonly beforeJournal?: () => void
}

/** Shows how many files of a copy are done, out of how many. */
export type FileProgress = (done: number, of: number) => void

/** Resources for copying a lake. */
export interface CopyDeps {
  readonly signal: AbortSignal
  /** Called now and then. */
  readonly onFile?: FileProgress
}

/** Result of copying a lake. */
export interface CopySummary {
  /** Id of the lake. */
  readonly lake: string
  /** Newest version of the copy. */
  readonly version: number
  /** Newest version of the copy before; 0 for none. */
  readonly before: number
  /** Number of data files that were copied. */
  readonly files: number
  readonly bytes: number
  /** Number of journal entries that were copied. */
  readonly entries: number
  /** Number of notes of stamped results that were copied. */
  readonly stamps: number
  /** Whether the newest entry of the copy was replaced, because the lake had replaced it. */
  readonly rewritten: boolean
}

const mostTries = 5

/**
 * Copies what the newest version of a lake needs to the target: the missing files, each checked against its digest,
 * then the notes of stamped results, then the journal, entry by entry. At any instant a reader of the target finds a
 * whole version; a copy that was killed and run again ends the same.
 */
export async function copyLake(input: CopyInput, deps: CopyDeps): Promise<CopySummary> {
  for (let tries = 1; ; tries++) {
    const scratch = `${input.scratch}/${tries}`
    try {
      return await withCleanup(
        async () => await copyOnce({ ...input, scratch }, deps),
        async () => await realDisk.remove(scratch),
      )
    } catch (error) {
      if (!(error instanceof Vanished)) throw error
      // A lake that goes on merges and folds: then its newest version needs that file no longer.
      if (tries === mostTries)
        throw unsoundAt(input.from, error.message, 'a file that its journal names', 'no such file')
    }
  }
}

async function copyOnce(input: CopyInput, deps: CopyDeps): Promise<CopySummary> {
  const { from, to } = input
  const source = await journalAt(from, input.until)
  if (source.newest === 0)
    throw usage(`no lake in ${from.uri}`, {
      expected: 'a journal',
      next: 'name a lake folder or what publish --lake wrote',
    })
  const target = await journalAt(to)
  const earlierCopy = input.near ? { place: to, listing: target } : undefined
  using staged = await stageJournal(from, source, `${input.scratch}/journal`, earlierCopy).catch(
    async (error: unknown) => {
      // Listed while it was folded, a journal may seem to lack entries.
      throw isFolded(source, await journalAt(from, input.until)) ? new Vanished(entryFile(source.newest)) : error
    },
  )
  const { lake, version, provider } = staged.index.head()
  if (lake === null) throw new RangeError('a version without a lake')
  await agree(input, lake, target)
  const before = target.newest
  const ahead = { lake, version: before, before, files: 0, bytes: 0, entries: 0, stamps: 0, rewritten: false }
  // A target that a different publisher has brought further is left as it is.
  if (before > version && input.until !== undefined) return ahead
  const rewritten = await followsOn(input, staged, target)
  if (!(await to.read(places.marker)))
    await to.create(places.marker, mirrorMarker(lake, provider?.synthetic ?? false, input.mirrorOf(lake)))
  const needed = await neededBy(staged, from, earlierCopy?.place)
  const { stand, ...moved } = await bringFiles(input, needed.files, deps)
  await bringRuns(to, staged.root)
  await bringHeads(from, to, staged.index)
  const stamps = await bringNotes(to, staged.root, needed.notes)
  const step = { staged, target, rewritten, leap: rewritten || leaps(staged.index, before, stand) }
  input.beforeJournal?.()
  const entries = await bringJournal(to, step)
  return { lake, version, before, ...moved, entries, stamps, rewritten }
}

/** Refuses a target that is neither empty nor a mirror of the same lake. */
async function agree({ from, to }: CopyInput, lake: string, target: Listing): Promise<void> {
  const text = await to.read(places.marker)
  if (!text && target.newest === 0) return
  const marker = text && parseMarker(text.toString())
  if (marker && marker.lake === lake && marker.mirrorOf !== null) return
  const got = marker ? `${marker.mirrorOf === null ? 'the' : 'a mirror of'} lake ${marker.lake}` : 'something else'
  throw usage(to.uri, {
    expected: `nothing, or a mirror of lake ${lake} (${from.uri})`,
    got,
    next: 'name another folder',
  })
}

/** Whether the target's newest entry was rewritten at the source; any other difference between both is refused. */
async function followsOn({ from, to, scratch }: CopyInput, staged: StagedJournal, target: Listing): Promise<boolean> {
  const { newest } = target
  const digest = await newestDigest(to, target, `${scratch}/target`)
  if (digest === null) return false
  const targetDigest = versionDigest(staged.index, newest)
  if (targetDigest === digest) return false
  if (staged.entries.includes(newest)) {
    const { entry } = await readEntry(staged.root, newest)
    if (entry.replaces === digest) return true
  }
  throw new LakeError('integrity', {
    subject: `${from.uri}: version ${newest}`,
    expected: `the entry that ${to.uri} holds, ${digest.slice(0, 12)}`,
    got:
      targetDigest === null
        ? `version ${staged.index.head().version} as the newest`
        : `another one, ${targetDigest.slice(0, 12)}`,
    next: 'that lake went back, or is another copy of it: mirror it into an empty folder',
  })
}

async function bringFiles(
  { from, to, scratch, thorough = false }: CopyInput,
  needed: readonly StampedFile[],
  { signal, onFile }: CopyDeps,
): Promise<{ files: number; bytes: number; stand: ReadonlySet<string> }> {
  const { missing, changed, there } = await comparedAt(
    to,
    needed,
    thorough ? { local: `${scratch}/there`, signal } : undefined,
  )
  const lacking = needed.filter(({ path }) => missing.has(path) || changed.has(path))
  const failed = new AbortController()
  let done = 0
  const limit = pLimit(atOnce)
  const bring = async (file: StampedFile, n: number): Promise<void> => {
    if (failed.signal.aborted) return
    try {
      stopAt(signal, `copying ${from.uri} to ${to.uri}`)
      await bringFile(from, to, file, `${scratch}/file-${n}`)
      onFile?.(++done, lacking.length)
    } catch (error) {
      failed.abort()
      throw error
    }
  }
  const ends = await Promise.allSettled(lacking.map((file, n) => limit(bring, file, n)))
  for (const end of ends) if (end.status === 'rejected') throw end.reason
  const bytes = lacking.reduce((sum, file) => sum + file.bytes, 0)
  return { files: lacking.length, bytes, stand: new Set([...there, ...needed.map(({ path }) => path)]) }
}

async function bringFile(from: Destination, to: Destination, file: StampedFile, local: string): Promise<void> {
  const { path } = file
  if (!(await from.get(path, local))) throw new Vanished(path)
  const wrong = await unlike(local, file)
  if (wrong) throw unsoundAt(from, path, wrong.expected, wrong.got)
  await to.put(path, local)
  await realDisk.remove(local)
}

/** Copies the files of runs, which only ever grow; a last line without its end does not count. */
async function bringRuns(to: Destination, root: string): Promise<void> {
  const sizes = new Map((await to.list(places.runs)).map(({ path, bytes }) => [path, bytes]))
  for (const name of await namesIn(inLake(root, places.runs))) {
    const path = `${places.runs}/${name}`
    const local = inLake(root, path)
    if ((await sizeOf(local)) > (sizes.get(path) ?? 0)) await to.put(path, local)
  }
}

/** Copies the signed heads that the lake stored, as they were stored; one that was lost or changed stays behind. */
async function bringHeads(from: Destination, to: Destination, index: Ledger): Promise<void> {
  for (const [path, digest] of recordedHeadFiles(index)) {
    const present = await to.read(path)
    if (present && sha256Bytes(present) === digest) continue
    const bytes = await from.read(path)
    if (bytes && sha256Bytes(bytes) === digest) await to.replace(path, bytes)
  }
}

const sha256Bytes = (bytes: Buffer): string => hash('sha256', bytes)

async function bringNotes(to: Destination, root: string, notes: readonly string[]): Promise<number> {
  const storedStamps = new Set((await to.list(places.stamps)).map(({ path }) => path))
  const missing = notes.filter((path) => !storedStamps.has(path))
  for (const path of missing) await to.create(path, await readBytes(inLake(root, path)))
  return missing.length
}

/**
 * Whether a version between those before and after the copy names a file that is missing, because it was added and
 * removed meanwhile: then no reader may see that version.
 */
function leaps(index: Ledger, before: number, stand: ReadonlySet<string>): boolean {
  const { version } = index.head()
  const passed = index.statement(
    'SELECT DISTINCT path FROM files WHERE removed_version > ? AND removed_version <= ? AND added_version < ?',
  )
  return passed.all(before + 1, version, version).some(({ path }) => !stand.has(String(path)))
}

interface Step {
  readonly staged: StagedJournal
  readonly target: Listing
  readonly rewritten: boolean
  /**
   * Whether to step from the earlier version to the newest at once: by a checkpoint of the newest, which is one file.
   */
  readonly leap: boolean
}

/**
 * Copies the journal. A checkpoint makes older entries superfluous; without one each entry, in their order, is a
 * commit.
 */
async function bringJournal(to: Destination, { staged, target, rewritten, leap }: Step): Promise<number> {
  const { root, index } = staged
  const { version } = index.head()
  if (leap) await writeCheckpoint(realDisk, index)
  const newestCheckpoint = target.checkpoints.at(-1) ?? 0
  const base = leap ? version : Math.max(staged.checkpoint ?? 0, newestCheckpoint)
  if (rewritten) await to.remove(entryFile(target.newest))
  if (base > newestCheckpoint || rewritten) await to.put(checkpointFile(base), inLake(root, checkpointFile(base)))
  for (const version of target.entries.filter((entry) => entry < base)) await to.remove(entryFile(version))
  for (const version of target.checkpoints.filter((checkpoint) => checkpoint < base))
    await to.remove(checkpointFile(version))
  // The newest entry is kept next to its checkpoint: by it the next copy knows where this one ended.
  const keptUntil = rewritten ? target.newest - 1 : target.newest
  const fresh = staged.entries.filter((entry) => (entry > keptUntil && !leap) || entry === version)
  for (const entry of fresh) await bringEntry(to, root, entryFile(entry))
  return version - target.newest + (rewritten ? 1 : 0)
}

async function bringEntry(to: Destination, root: string, path: string): Promise<void> {
  const bytes = await readBytes(inLake(root, path))
  if ((await to.create(path, bytes)) === 'created' || (await to.read(path))?.equals(bytes) === true) return
  throw new LakeError('integrity', {
    subject: `${to.uri}/${path}`,
    expected: 'no entry, or the same',
    got: 'another one',
    next: 'two lakes of one id are copied there: name another folder for one of them',
  })
}

/**
 * Lists what a lake needs to be complete elsewhere: the live files of the staged version, and all that its stamped
 * results need.
 */
async function neededBy({ root, index }: StagedJournal, from: Destination, near?: Destination) {
  const files = new Map<string, StampedFile>()
  const take = ({ path, bytes, sha256 }: StampedFile): void => {
    if (dataVersion(path) === undefined && !isCopy(path))
      throw unsoundAt(from, `file ${path}`, 'a name that this program gives', 'another')
    files.set(path, { path, bytes, sha256 })
  }
  for (const file of liveFiles(index)) take(file)
  const listed = await from.list(places.stamps)
  const notes = await stageNotes(root, from, listed, near)
  const ownPaths: string[] = []
  const { lake, version } = index.head()
  for (const id of notes) {
    const stamp = await readStamp(root, id).catch((error: unknown) => {
      throw error instanceof LakeError ? inPlace(error, from) : error
    })
    if (stamp.lake !== lake || stamp.version > version) continue
    for (const file of stamp.files) take(file)
    ownPaths.push(stampFile(id))
  }
  return {
    /** Data files and what stamped results were made with, each once. */
    files: [...files.values()],
    /** Notes of stamped results, staged; after the files that they name. */
    notes: ownPaths,
  }
}

/** Whether a path is one of what `stamp` copies. */
const isCopy = (path: string): boolean => /^stamps\/[\w-]+\.(?:sql|parquet)$/.test(path)

async function stageNotes(
  root: string,
  from: Destination,
  listed: readonly Published[],
  near: Destination | undefined,
): Promise<string[]> {
  await makeFolder(realDisk, inLake(root, places.stamps))
  for (const { path } of listed) {
    if (!/^stamps\/[0-9a-f]{16}\.json$/.test(path)) continue
    // A note never changes.
    if ((await near?.get(path, inLake(root, path))) === true && (await isSound(root, path))) continue
    if (!(await from.get(path, inLake(root, path)))) throw new Vanished(path)
  }
  return await listStamps(root)
}

async function isSound(root: string, path: string): Promise<boolean> {
  return await readStamp(root, path.slice(`${places.stamps}/`.length, -'.json'.length)).then(
    () => true,
    () => false,
  )
}
