import { join } from 'node:path'
import pLimit from 'p-limit'
import { LakeError } from '../../base/errors.ts'
import { checkpointHeader } from '../../lake/ledger/checkpoint.ts'
import { decodeEntry } from '../../lake/ledger/entry.ts'
import { loadCheckpointIndex } from '../../lake/ledger/checkpoint-writer.ts'
import { type Listing, listingOf } from '../../lake/ledger/journal.ts'
import { Ledger } from '../../lake/ledger/ledger.ts'
import { unpackEntry } from '../../lake/ledger/packed-entry.ts'
import { makeFolder, realDisk } from '../../lake/store/disk.ts'
import { checkpointFile, entryFile, inLake, places } from '../../lake/store/layout.ts'
import type { Destination } from './destination.ts'

/** Files that travel at once. */
export const atOnce = 6

/** Error for a listed file that no longer exists: the place has changed and must be listed again. */
export class Vanished extends Error {}

/** Builds the error for something damaged at the source. */
export function unsoundAt(from: Destination, what: string, expected?: string, got?: string, cause?: unknown) {
  const next = 'put it back there from a copy, or run pitlake doctor where that lake is; nothing was taken over'
  return new LakeError('integrity', { subject: `${from.uri}: ${what}`, expected, got, next, cause })
}

/** Lists the journal of a place, up to a version. */
export async function journalAt(place: Destination, until?: number): Promise<Listing> {
  const paths = (await place.list(places.journal)).map(({ path }) => path.slice(places.journal.length + 1))
  return listingOf(paths, until)
}

/** Place on this machine with an earlier copy. */
interface EarlierCopy {
  readonly place: Destination
  readonly listing: Listing
}

/**
 * Copies the journal of a place to a folder and proves it: every byte by its checksum, every entry by the digest that
 * the next one names. Entries of an earlier copy need not travel, but for its last one, which is compared.
 */
export async function stageJournal(
  from: Destination,
  source: Listing,
  root: string,
  earlierCopy?: EarlierCopy,
): Promise<StagedJournal> {
  if (earlierCopy && goesOn(source, earlierCopy.listing)) {
    const { newest } = earlierCopy.listing
    const near = inForce(earlierCopy.listing).filter(
      ({ version, entry }) => !entry || version < newest || !has(source, version),
    )
    const far = source.entries.filter((version) => version >= newest)
    const places = [
      ...near.map((file) => ({ ...file, place: earlierCopy.place })),
      ...far.map((version) => ofEntry(version, from)),
    ]
    try {
      return await staged(`${root}/near`, from, places, earlierCopy)
    } catch (error) {
      // The local copy may be the one that does not fit.
      if (!(error instanceof LakeError)) throw error
    }
  }
  const places = inForce(source).map((file) => ({ ...file, place: from }))
  return await staged(`${root}/all`, from, places, earlierCopy)
}

/** A file of a journal: an entry or a checkpoint, and the place to copy it from. */
interface JournalFile {
  readonly version: number
  readonly entry: boolean
  readonly place: Destination
}

const ofEntry = (version: number, place: Destination): JournalFile => ({ version, entry: true, place })

const has = ({ entries }: Listing, version: number): boolean => entries.includes(version)

/** Whether the source has every entry after the newest one here. */
function goesOn(source: Listing, { newest }: Listing): boolean {
  if (newest === 0 || source.newest < newest) return false
  const after = source.entries.filter((version) => version > newest)
  return after.length === source.newest - newest && (after.length > 0 || has(source, newest))
}

/** Lists the newest checkpoint and the entries after it. */
function inForce({ entries, checkpoints }: Listing): Omit<JournalFile, 'place'>[] {
  const checkpoint = checkpoints.at(-1) ?? 0
  const after = entries.filter((version) => version > checkpoint).map((version) => ({ version, entry: true }))
  return checkpoint === 0 ? after : [{ version: checkpoint, entry: false }, ...after]
}

/** A journal that was copied to this machine and read. */
export interface StagedJournal extends Disposable {
  /** Folder of the copy. */
  readonly root: string
  /** The index, in memory; it is closed when the journal is disposed of. */
  readonly index: Ledger
  /** Version of the newest checkpoint; null if every entry is there. */
  readonly checkpoint: number | null
  /** Versions of the entries after the checkpoint, ascending. */
  readonly entries: readonly number[]
}

/** Copies the files of a journal to this machine and reads them. */
async function staged(
  root: string,
  from: Destination,
  files: readonly JournalFile[],
  earlierCopy?: EarlierCopy,
): Promise<StagedJournal> {
  await makeFolder(realDisk, inLake(root, places.journal))
  await stageRuns(root, from, earlierCopy)
  for (const { version, entry, place } of files) {
    const path = entry ? entryFile(version) : checkpointFile(version)
    if (!(await place.get(path, inLake(root, path)))) throw new Vanished(path)
  }
  const newest = files.at(-1)?.version ?? 0
  const checkpoint = files.find(({ entry }) => !entry)?.version ?? null
  const entries = files.flatMap(({ version, entry }) => (entry ? [version] : []))
  try {
    if (checkpoint !== null) await checkpointHeader(root, checkpoint)
    const index = await Ledger.inMemory(root)
    if (index.head().version === newest)
      return { root, index, checkpoint, entries, [Symbol.dispose]: () => index.close() }
    index.close()
    throw new Vanished(entryFile(index.head().version + 1))
  } catch (error) {
    throw error instanceof LakeError ? inPlace(error, from) : error
  }
}

/** Path of the file of a run as `runName` makes it: a timestamp, a process, a job. */
const runPath = /^runs\/\d[\w-]{0,120}\.jsonl$/
/** Maximum bytes of the file of a run that is copied; each is merged into a checkpoint long before. */
const longestRun = 256_000_000

/**
 * Copies the files of runs, which are part of the index: each line counts right after the version that it follows. Such
 * a file only grows: one of the same size need not travel.
 */
async function stageRuns(root: string, from: Destination, earlierCopy: EarlierCopy | undefined): Promise<void> {
  await makeFolder(realDisk, inLake(root, places.runs))
  const here = new Map((await earlierCopy?.place.list(places.runs))?.map(({ path, bytes }) => [path, bytes]))
  const limit = pLimit(atOnce)
  const files = (await from.list(places.runs)).filter(({ path }) => runPath.test(path))
  const large = files.find(({ bytes }) => bytes > longestRun)
  if (large) throw unsoundAt(from, large.path, `at most ${longestRun} bytes`, String(large.bytes))
  await limit.map(files, async ({ path, bytes }) => {
    const place = earlierCopy && here.get(path) === bytes ? earlierCopy.place : from
    await place.get(path, inLake(root, path))
  })
}

/** Returns an integrity error with the place of its file; any other error as it is. */
export function inPlace(error: LakeError, from: Destination): LakeError {
  const [{ subject, expected, got } = { subject: error.message }] = error.complaints
  return error.kind === 'integrity' ? unsoundAt(from, subject, expected, got, error) : error
}

/**
 * Reads the digest of the newest version of a place; null if it has none. `scratch`: a folder for what must be read.
 */
export async function newestDigest(place: Destination, { newest }: Listing, scratch: string): Promise<string | null> {
  if (newest === 0) return null
  const entry = await place.read(entryFile(newest))
  if (entry) return decodeEntry(unpackEntry(entry, entryFile(newest)), entryFile(newest)).digest
  await makeFolder(realDisk, join(scratch, places.journal))
  if (!(await place.get(checkpointFile(newest), inLake(scratch, checkpointFile(newest)))))
    throw new Vanished(checkpointFile(newest))
  using index = await loadCheckpointIndex(scratch, newest)
  return index?.head().digest ?? null
}

/** Reads the digest of a version from an index; null if the index has none. */
export function versionDigest(index: Ledger, version: number): string | null {
  const row = index.statement('SELECT digest FROM versions WHERE version = ?').get(version)
  return typeof row?.['digest'] === 'string' ? row['digest'] : null
}
