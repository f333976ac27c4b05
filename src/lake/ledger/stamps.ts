import { requireFileError } from '../store/file-errors.ts'
import { readText } from '../store/files.ts'
import { applyStamp } from './apply.ts'
import { LakeError } from '../../base/errors.ts'
import type { Index } from './index-rows.ts'
import { type Disk, exists, makeFolder, namesIn } from '../store/disk.ts'
import { openSealed, seal, type Stamp } from './entry.ts'
import { inLake, places } from '../store/layout.ts'

/** A file that a stamped result needs, with the SHA-256 of its bytes. */
export interface StampedFile {
  /** Path relative to the lake. */
  readonly path: string
  readonly bytes: number
  readonly sha256: string
}

/**
 * The note that pins a stamped result. It is stored next to the journal and makes no version, because the data do not
 * change.
 */
export interface StampFile extends Stamp {
  readonly schema_version: number
  readonly lake: string
  readonly program: string
  /** Digest of the availability rules in force; null if the lake has none. */
  readonly rules: string | null
  readonly files: readonly StampedFile[]
}

/** The newest format of a note, which this program reads and writes. */
export const stampSchema = 1

/** Path of a note: `stamps/<id>.json`. */
export function stampFile(id: string): string {
  return `${places.stamps}/${id}.json`
}

/** Writes the note of a stamp durably; false if it already exists, because a note never changes. */
export async function writeStamp(disk: Disk, root: string, temporary: string, stamp: StampFile): Promise<boolean> {
  await makeFolder(disk, inLake(root, places.stamps))
  await disk.write(temporary, seal(JSON.stringify(stamp)).text)
  const isClaimed = await disk.claim(temporary, inLake(root, stampFile(stamp.id)))
  await disk.syncFolder(inLake(root, places.stamps))
  return isClaimed
}

/** Lists the ids of all notes, sorted. */
export async function listStamps(root: string): Promise<string[]> {
  const names = await namesIn(inLake(root, places.stamps))
  return names.flatMap((name) => /^([0-9a-f]{16})\.json$/.exec(name)?.[1] ?? [])
}

/** Reads a note and proves that no byte of it changed. */
export async function readStamp(root: string, id: string): Promise<StampFile> {
  const name = stampFile(id)
  const stamp = JSON.parse(openSealed(await readText(inLake(root, name)), `note ${name}`).body) as StampFile
  if (stamp.schema_version > stampSchema)
    throw new LakeError('usage', {
      subject: name,
      expected: `schema_version up to ${stampSchema}`,
      got: String(stamp.schema_version),
      next: 'this note was written by a newer pitlake: update the program',
    })
  if (stamp.id === id) return stamp
  throw new LakeError('integrity', {
    subject: `note ${name}`,
    expected: `the stamp ${id}`,
    got: stamp.id,
    next: 'put it back from a copy of the lake',
  })
}

/** Reads a note; undefined if it is missing or damaged. */
export async function readStampIfSound(root: string, id: string): Promise<StampFile | undefined> {
  return await readStamp(root, id).catch((error: unknown) => {
    requireFileError(error, `reading ${stampFile(id)}`)
    return undefined
  })
}

/**
 * Adds the notes that the index lacks, up to its version. A damaged one is left to `doctor`, and to `vacuum`, which
 * stops until it is repaired.
 */
export async function takeStamps(
  index: Index,
  root: string,
  head: { lake: string | null; version: number },
): Promise<void> {
  const storedStamp = index.statement('SELECT 1 FROM stamps WHERE id = ?')
  for (const id of await listStamps(root)) {
    if (storedStamp.get(id)) continue
    const stamp = await readStampIfSound(root, id)
    if (stamp?.lake === head.lake && stamp.version <= head.version) applyStamp(index, stamp)
  }
}

/** Lists the ids in the index whose notes no longer exist. */
export async function lostStamps(index: Index, root: string): Promise<string[]> {
  const rows = index.statement('SELECT id FROM stamps ORDER BY id').all()
  const lostIds: string[] = []
  for (const { id } of rows) if (!(await exists(inLake(root, stampFile(String(id)))))) lostIds.push(String(id))
  return lostIds
}
