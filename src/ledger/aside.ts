import { textOf } from '../store/files.ts'
import { LakeError } from '../errors.ts'
import { type Disk, entriesIn, makeFolder } from '../store/disk.ts'
import { openSealed, refuseNewer, sha256 } from './entry.ts'
import { listJournal } from './journal.ts'
import { asideFile, entryFile, inLake, parseJournalName, places } from '../store/layout.ts'
import { Ledger } from './ledger.ts'

/** A last entry that was written as it is and yet cannot be applied to the lake before it. */
export interface Unfit {
  readonly version: number
  readonly digest: string
  /** Why. */
  readonly found: string
}

/**
 * The journal's last entry, if its bytes are sound and everything before it is, but it cannot be applied. Programs of
 * before could commit such a one; no command opens the lake while it stands there.
 */
export async function unfitEntry(root: string): Promise<Unfit | undefined> {
  const { newest: version, folded } = await listJournal(root)
  if (folded >= version) return undefined
  const text = await textOf(inLake(root, entryFile(version)))
  const digest = text === undefined ? undefined : soundDigest(text, version)
  if (text === undefined || digest === undefined) return undefined
  using before = await Ledger.inMemory(root, version - 1).catch(() => undefined)
  if (before?.head().version !== version - 1) {
    before?.close()
    return undefined
  }
  try {
    const { entry } = before.rehearse(text, entryFile(version))
    const follows = entry.version === version && entry.previous === before.head().digest
    return follows ? undefined : { version, digest, found: 'it does not follow the entry before it' }
  } catch (error) {
    if (!(error instanceof LakeError) || error.kind !== 'integrity') throw error
    const [complaint] = error.complaints
    return { version, digest, found: `it cannot be applied: ${complaint?.got ?? error.message}` }
  }
}

/** The digest of a text of this program's schema whose bytes are as they were written. */
function soundDigest(text: string, version: number): string | undefined {
  try {
    const { body, digest } = openSealed(text, entryFile(version))
    const { schema_version } = JSON.parse(body) as { schema_version?: unknown }
    refuseNewer(schema_version, entryFile(version))
    return digest
  } catch {
    return undefined
  }
}

/** Moves an unfit entry out of the journal; its successor takes its number and names its digest. Hold the commit lock. */
export async function setAside(disk: Disk, root: string, { version, digest }: Unfit): Promise<string> {
  await makeFolder(disk, inLake(root, places.aside))
  await disk.move(inLake(root, entryFile(version)), inLake(root, asideFile(version, digest)))
  for (const place of [places.aside, places.journal]) await disk.syncFolder(inLake(root, place))
  return `${entryFile(version)} was set aside as ${asideFile(version, digest)}`
}

/** Folders that bear the name of an entry or a checkpoint: no version can take that name. */
export async function strayFolders(root: string): Promise<string[]> {
  const entries = await entriesIn(inLake(root, places.journal))
  return entries.filter((entry) => entry.isDirectory() && parseJournalName(entry.name)).map(({ name }) => name)
}

/** Moves such a folder where it is in nobody's way, whatever it holds. */
export async function moveStray(disk: Disk, root: string, name: string, mark: number): Promise<string> {
  const target = `${places.aside}/${name}-${sha256(`${name} ${mark}`).slice(0, 8)}`
  await makeFolder(disk, inLake(root, places.aside))
  await disk.move(inLake(root, `${places.journal}/${name}`), inLake(root, target))
  return `${places.journal}/${name} was moved to ${target}`
}
