import { readText } from '../store/files.ts'
import { LakeError } from '../errors.ts'
import { type Disk, entriesIn, makeFolder, namesIn } from '../store/disk.ts'
import { decodeEntry, type Entry, encodeEntry } from './entry.ts'
import { checkpointFile, entryFile, inLake, parseJournalName, places } from '../store/layout.ts'

/** An entry with the SHA-256 that its successor names. */
export interface Sealed {
  readonly entry: Entry
  readonly digest: string
}

/** The versions that the journal's folder holds, ascending. */
export async function listJournal(root: string): Promise<{ entries: number[]; checkpoints: number[] }> {
  const entries: number[] = []
  const checkpoints: number[] = []
  for (const entry of await entriesIn(inLake(root, places.journal))) {
    // A folder of such a name is nobody's entry.
    const parsed = entry.isDirectory() ? undefined : parseJournalName(entry.name)
    if (parsed) (parsed.kind === 'entry' ? entries : checkpoints).push(parsed.version)
  }
  return { entries: entries.toSorted((a, b) => a - b), checkpoints: checkpoints.toSorted((a, b) => a - b) }
}

/** The files of the journal that its newest checkpoint makes superfluous. */
export async function foldedFiles(root: string): Promise<string[]> {
  const { entries, checkpoints } = await listJournal(root)
  const newest = checkpoints.at(-1) ?? 0
  return [
    ...entries.filter((version) => version <= newest).map(entryFile),
    ...checkpoints.filter((version) => version < newest).map(checkpointFile),
  ]
}

/** Reads one entry and checks its bytes and its number. */
export async function readEntry(root: string, version: number): Promise<Sealed> {
  const file = entryFile(version)
  const text = await readText(inLake(root, file)).catch((cause: unknown) => {
    throw lost(version, cause)
  })
  const sealed = decodeEntry(text, file)
  if (sealed.entry.version !== version) throw broken(version, `version ${version}`, `${sealed.entry.version}`)
  return sealed
}

/**
 * Every entry after a version and up to another, in order, each proved to follow the one before; no other is read.
 * `digest` is that of the version started from; null starts at the first entry.
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
 * Writes an entry durably and makes it visible in one step: that step is the commit.
 * False when another writer took the version first; nothing is left behind then.
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
    await disk.write(temporary, text)
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

/** The digest of the entry of this number that was set aside; of several the last in the order of names, null for none. */
export async function asideDigest(root: string, version: number): Promise<string | null> {
  const digests = (await namesIn(inLake(root, places.aside))).flatMap((name) => {
    const [, number, digest] = /^(\d{10,15})-([0-9a-f]{64})\.json$/.exec(name) ?? []
    return digest !== undefined && Number(number) === version ? [digest] : []
  })
  return digests.at(-1) ?? null
}

function lost(version: number, cause: unknown): LakeError {
  return new LakeError('integrity', {
    subject: `journal entry ${entryFile(version)} cannot be read`,
    next: 'run pitlake doctor, or put the file back from a copy of the lake',
    cause,
  })
}

function broken(version: number, expected: string, got: string): LakeError {
  return new LakeError('integrity', {
    subject: `journal entry ${entryFile(version)} does not follow the one before`,
    expected,
    got,
    next: 'run pitlake doctor, or put the files back from a copy of the lake',
  })
}
