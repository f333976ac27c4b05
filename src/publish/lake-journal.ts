import { join } from 'node:path'
import { LakeError } from '../errors.ts'
import { checkpointHeader } from '../ledger/checkpoint.ts'
import { decodeEntry } from '../ledger/entry.ts'
import { soundly } from '../ledger/fold.ts'
import { Ledger } from '../ledger/ledger.ts'
import { makeFolder, realDisk } from '../store/disk.ts'
import { checkpointFile, entryFile, inLake, parseJournalName, places } from '../store/layout.ts'
import type { Destination } from './destination.ts'

/** Numbers of the entries and checkpoints that a place holds, ascending. */
export interface Listing {
  readonly entries: readonly number[]
  readonly checkpoints: readonly number[]
  /** The newest version that they tell of; 0 for none. */
  readonly newest: number
}

/** Something that was listed is not there any more: the place has moved on, and is to be looked at anew. */
export class Vanished extends Error {}

/** What a place holds of a journal, up to a version. */
export async function journalAt(place: Destination, until = Number.POSITIVE_INFINITY): Promise<Listing> {
  const parsed = (await place.list(places.journal)).flatMap(
    ({ path }) => parseJournalName(path.slice(places.journal.length + 1)) ?? [],
  )
  const numbers = (kind: 'entry' | 'checkpoint'): number[] =>
    parsed.flatMap((one) => (one.kind === kind && one.version <= until ? [one.version] : [])).toSorted((a, b) => a - b)
  const [entries, checkpoints] = [numbers('entry'), numbers('checkpoint')]
  return { entries, checkpoints, newest: Math.max(entries.at(-1) ?? 0, checkpoints.at(-1) ?? 0) }
}

/** A journal that was brought to this machine and read: its newest checkpoint and the entries after it. */
export interface Staged extends Disposable {
  readonly root: string
  readonly index: Ledger
  /** Null where every entry is there. */
  readonly checkpoint: number | null
  readonly entries: readonly number[]
}

/**
 * Brings the journal of a place to a folder and proves it: every byte by its checksum, every entry by the digest that
 * the next one names. `held` gives what need not travel.
 */
export async function stageJournal(
  from: Destination,
  { entries, checkpoints, newest }: Listing,
  root: string,
  held: (path: string) => Promise<Buffer | undefined>,
): Promise<Staged> {
  const checkpoint = checkpoints.at(-1) ?? null
  const after = entries.filter((version) => version > (checkpoint ?? 0))
  await makeFolder(realDisk, inLake(root, places.journal))
  for (const path of [...(checkpoint === null ? [] : [checkpointFile(checkpoint)]), ...after.map(entryFile)]) {
    const own = await held(path)
    if (own) await realDisk.write(inLake(root, path), own)
    else if (!(await from.get(path, inLake(root, path)))) throw new Vanished(path)
  }
  try {
    if (checkpoint !== null) await checkpointHeader(root, checkpoint)
    const index = await Ledger.inMemory(root)
    if (index.head().version === newest)
      return { root, index, checkpoint, entries: after, [Symbol.dispose]: () => index.close() }
    index.close()
    throw new Vanished(entryFile(index.head().version + 1))
  } catch (error) {
    throw error instanceof LakeError ? inPlace(error, from) : error
  }
}

/** The same complaint, with the place whose file it is. */
function inPlace(error: LakeError, from: Destination): LakeError {
  const [{ subject, expected, got } = { subject: error.message }] = error.complaints
  if (error.kind !== 'integrity') return error
  const next = 'put it back there from a copy, or run pitlake doctor where that lake is; nothing was taken over'
  return new LakeError('integrity', { subject: `${from.uri}: ${subject}`, expected, got, next, cause: error })
}

/** The digest of the newest version of a place; null where it has none. `scratch`: a folder for what must be read. */
export async function newestDigest(place: Destination, { newest }: Listing, scratch: string): Promise<string | null> {
  if (newest === 0) return null
  const entry = await place.read(entryFile(newest))
  if (entry) return decodeEntry(entry.toString(), entryFile(newest)).digest
  await makeFolder(realDisk, join(scratch, places.journal))
  if (!(await place.get(checkpointFile(newest), inLake(scratch, checkpointFile(newest)))))
    throw new Vanished(checkpointFile(newest))
  using index = await soundly(scratch, newest)
  return index?.head().digest ?? null
}

/** The digest of a version as an index tells it. */
export function digestOf(index: Ledger, version: number): string | null {
  const row = index.statement('SELECT digest FROM versions WHERE version = ?').get(version)
  return typeof row?.['digest'] === 'string' ? row['digest'] : null
}
