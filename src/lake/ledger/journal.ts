import { LakeError } from '../../base/errors.ts'
import { type Disk, entriesIn, makeFolder, namesIn } from '../store/disk.ts'
import { decodeEntry, type Entry, encodeEntry, putItBack, refuseUncompressed } from './entry.ts'
import { packEntry, readEntryText } from './packed-entry.ts'
import { entryFile, inLake, parseJournalName, places } from '../store/layout.ts'

/** An entry with the SHA-256 that its successor names. */
export interface Sealed {
  readonly entry: Entry
  readonly digest: string
}

/** Lists the versions of the entries and checkpoints in the journal's folder. */
export async function listJournal(root: string): Promise<Listing> {
  const entries = await entriesIn(inLake(root, places.journal))
  // A folder of such a name is not an entry.
  return listingOf(entries.flatMap((entry) => (entry.isDirectory() ? [] : [entry.name])))
}

/** Whether the journal was folded since it was listed. */
export async function isFoldedSince(root: string, listed: Listing): Promise<boolean> {
  return isFolded(listed, await listJournal(root))
}

/**
 * Whether a checkpoint was added between two listings, or files were removed that one replaces (by a vacuum, a copy or
 * a pull).
 */
export function isFolded({ entries, checkpoints, folded }: Listing, now: Listing): boolean {
  const entriesNow = new Set(now.entries)
  const checkpointsNow = new Set(now.checkpoints)
  const isAnyGone =
    entries.some((version) => !entriesNow.has(version)) || checkpoints.some((version) => !checkpointsNow.has(version))
  return isAnyGone || now.folded !== folded
}

/**
 * Does work on the contents of the journal's folder, and repeats it if it fails because a checkpoint was written
 * meanwhile.
 */
export async function onJournal<T>(root: string, work: (listing: Listing) => Promise<T>): Promise<T> {
  const listed = await listJournal(root)
  try {
    return await work(listed)
  } catch (error) {
    if (!(await isFoldedSince(root, listed))) throw error
    return await onJournal(root, work)
  }
}

/** The versions with files in a journal's folder. */
export interface Listing {
  /** Versions with an entry, ascending. */
  readonly entries: readonly number[]
  /** Versions with a checkpoint, ascending. */
  readonly checkpoints: readonly number[]
  /** The newest version with an entry or a checkpoint; 0 if there is none. */
  readonly newest: number
  /** The newest version with a checkpoint; 0 if there is none. */
  readonly folded: number
}

/** Reads the names in a journal's folder, up to a version. */
export function listingOf(names: readonly string[], until: number = Number.POSITIVE_INFINITY): Listing {
  const found: Record<'entry' | 'checkpoint', number[]> = { entry: [], checkpoint: [] }
  for (const name of names) {
    const parsed = parseJournalName(name)
    if (parsed && parsed.version <= until) found[parsed.kind].push(parsed.version)
  }
  const entries = found.entry.toSorted((a, b) => a - b)
  const uncompressed = entries.length === 0 ? names.find((name) => /^\d{10,15}\.json$/.test(name)) : undefined
  if (uncompressed !== undefined) refuseUncompressed(`${places.journal}/${uncompressed}`)
  const checkpoints = found.checkpoint.toSorted((a, b) => a - b)
  const folded = checkpoints.at(-1) ?? 0
  return { entries, checkpoints, newest: Math.max(entries.at(-1) ?? 0, folded), folded }
}

/** Reads one entry and checks its bytes and its number. */
export async function readEntry(root: string, version: number): Promise<Sealed> {
  const file = entryFile(version)
  const sealed = decodeEntry(await readEntryText(root, version), file)
  if (sealed.entry.version !== version) throw broken(version, `version ${version}`, `${sealed.entry.version}`)
  return sealed
}

/**
 * Reads every entry after a version and up to another, in order, and proves that each follows the one before; no other
 * is read. `digest` is that of the initial version; null starts at the first entry.
 */
export async function* entriesAfter(
  root: string,
  version: number,
  digest: string | null,
  until: number = Number.POSITIVE_INFINITY,
): AsyncGenerator<Sealed> {
  const { entries } = await listJournal(root)
  const head = Math.min(entries.at(-1) ?? 0, until)
  let previous = digest
  for (let next = version + 1; next <= head; next++) {
    const sealed = await readEntry(root, next)
    if (sealed.entry.previous !== previous)
      throw broken(next, `the digest of version ${next - 1}, ${previous}`, String(sealed.entry.previous))
    yield sealed
    previous = sealed.digest
  }
}

/**
 * Writes an entry durably and makes it visible in one step, which is the commit. False if another writer took the
 * version first; no file is left behind then.
 */
export async function appendEntry(
  disk: Disk,
  root: string,
  entry: Entry,
  mark: string,
  { text, digest } = encodeEntry(entry),
): Promise<string | false> {
  const folder = inLake(root, places.journal)
  const temporary = inLake(root, `${places.journal}/.tmp-${entry.version}-${mark}`)
  await makeFolder(disk, folder)
  try {
    await disk.write(temporary, packEntry(text, entryFile(entry.version)))
    if (!(await disk.claim(temporary, inLake(root, entryFile(entry.version))))) {
      await disk.remove(temporary)
      return false
    }
  } catch (error) {
    await disk.remove(temporary).catch(() => undefined)
    throw error
  }
  await disk.syncFolder(folder)
  return digest
}

/**
 * Returns the digest of the entry of this number that was set aside; of several the last in the order of names, null
 * for none.
 */
export async function asideDigest(root: string, version: number): Promise<string | null> {
  const digests = (await namesIn(inLake(root, places.aside))).flatMap((name) => {
    const [, number, digest] = /^(\d{10,15})-([0-9a-f]{64})\.json\.gz$/.exec(name) ?? []
    return digest !== undefined && Number(number) === version ? [digest] : []
  })
  return digests.at(-1) ?? null
}

function broken(version: number, expected: string, got: string): LakeError {
  const subject = `journal entry ${entryFile(version)} does not follow the one before`
  return new LakeError('integrity', { subject, expected, got, next: putItBack })
}
