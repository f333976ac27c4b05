import { isFolder, isThere } from '../store/files.ts'
import { ownData } from '../store/new-lake.ts'
import { posix } from 'node:path'
import type { CommitDeps } from './commit.ts'
import { type Disk, diskError, entriesIn, realDisk } from '../store/disk.ts'
import { filesOnDisk, isOnDisk } from './index-queries.ts'
import {
  dataVersion,
  decodeSegment,
  holderFile,
  inLake,
  instantName,
  isRunName,
  lockFile,
  places,
  spoolFolder,
} from '../store/layout.ts'
import { Ledger } from './ledger.ts'
import { isFree, lockCommit, tryLock } from '../store/lock.ts'
import { markerOf, readMarker } from '../store/marker.ts'
import { closePrivate, makeLakeFolder } from '../store/private-folders.ts'
import type { Micros } from '../../base/time.ts'

/** The folder of a run for uncommitted files; sweeps leave it alone while the run is alive. */
export interface Spool extends AsyncDisposable {
  /** Returns the path of a file in it, relative to the lake. */
  readonly path: (file: string) => string
  /** Returns the absolute path of a file in it. */
  readonly file: (file: string) => string
  /** Removes the folder with everything in it. */
  readonly close: () => Promise<void>
}

/** Opens the spool of a run; run names are unique. */
export async function openSpool(
  root: string,
  run: string,
  deps: Pick<CommitDeps, 'holder' | 'nowMicros' | 'disk'>,
): Promise<Spool> {
  const disk = deps.disk ?? realDisk
  const name = spoolLock(run)
  const lock = await tryLock(root, name, { ...deps.holder, since: deps.nowMicros() })
  if (!lock) throw new Error(`run ${run} has a spool already`)
  const folder = spoolFolder(run)
  try {
    await makeLakeFolder(disk, root, folder)
  } catch (error) {
    await lock.release()
    throw diskError(error, 'spool')
  }
  const close = async (): Promise<void> => {
    try {
      await disk.remove(inLake(root, folder))
    } finally {
      await lock.release()
    }
    await realDisk.remove(inLake(root, lockFile(name)))
  }
  return {
    path: (file: string) => `${folder}/${file}`,
    file: (file: string) => inLake(root, `${folder}/${file}`),
    close,
    [Symbol.asyncDispose]: close,
  }
}

function spoolLock(run: string): string {
  return `spool-${run}`
}

/**
 * Finds files that no entry names and no live run owns, if they certainly belong to pitlake: names of its own pattern,
 * in the folders of a lake with its marker, not reached through a link. A file of a version that the journal has not
 * reached counts only with `later`, for a lost journal. Removes nothing; hold the commit lock before you act on the
 * result.
 */
export async function findOrphans(ledger: Ledger, later = false): Promise<string[]> {
  const { root } = ledger
  const { lake, version } = ledger.head()
  const orphans: string[] = []
  if (version === 0 ? (await readMarker(root)) !== null : (await markerOf(root, lake)) === 'own') {
    for (const path of await unknownToJournal(ledger)) if (later || !isLater(path, version)) orphans.push(path)
    for (const name of await realNames(root, places.journal, 'file'))
      if (/^\.tmp-(?:\d+-|checkpoint-\d)/.test(name)) orphans.push(`${places.journal}/${name}`)
  }
  for (const name of await realNames(root, places.spool, 'folder')) {
    const lock = spoolLock(decoded(name))
    // A run takes the lock of its spool before it opens it; a spool that was copied without its lock is recognised by
    // name.
    const ours = isThere(inLake(root, lockFile(lock))) || (version > 0 && isRunName(name))
    if (ours && isFree(root, lock)) orphans.push(`${places.spool}/${name}`)
  }
  return orphans
}

/** Whether a data file is of a version that no commit after this one makes. */
export function isLater(path: string, version: number): boolean {
  return (dataVersion(path) ?? 0) > version + 1
}

/**
 * Lists the data files that the journal itself does not name: the index may have lost a row, and its file would be
 * removed for that. Empty if the journal cannot be read.
 */
async function unknownToJournal(ledger: Ledger): Promise<string[]> {
  const unlisted: string[] = []
  for await (const path of findUnnamedFiles(ledger)) unlisted.push(path)
  if (unlisted.length === 0) return []
  using journal = await Ledger.inMemory(ledger.root).catch(() => undefined)
  return journal === undefined ? [] : unlisted.filter((path) => !isOnDisk(journal, path))
}

/** Lists data files with names of pitlake's pattern that the index does not list, whatever their origin. */
export async function* findUnnamedFiles(ledger: Ledger): AsyncGenerator<string> {
  const named = new Set(filesOnDisk(ledger).map((file) => file.path))
  for await (const path of ownData(ledger.root)) if (!named.has(path)) yield path
}

/** Lists the names of real files or folders in a real folder of the lake, without links. */
async function realNames(root: string, place: string, kind: 'file' | 'folder'): Promise<string[]> {
  const path = inLake(root, place)
  if (!(await isFolder(path))) return []
  const entries = await entriesIn(path)
  return entries.filter((entry) => (kind === 'file' ? entry.isFile() : entry.isDirectory())).map(({ name }) => name)
}

/** Decodes the name of a folder; a name that no run gave, and that cannot be decoded, is returned unchanged. */
function decoded(name: string): string {
  try {
    return decodeSegment(name)
  } catch {
    return name
  }
}

/** Time for which swept files can be put back; their folders are named by the timestamp. */
const sweptStay: Micros = 7 * 86_400_000_000

/** Moves a file out of the way, to a folder named by the time of the move. */
async function setAside(disk: Disk, root: string, path: string, now: Micros): Promise<void> {
  const to = `${places.swept}/${instantName(now)}/${path}`
  await makeLakeFolder(disk, root, posix.dirname(to))
  await disk.move(inLake(root, path), inLake(root, to))
}

/** Removes for good the files that were swept a week ago. */
async function dropSwept(disk: Disk, root: string, now: Micros): Promise<void> {
  const last = instantName(now - sweptStay)
  for (const name of await realNames(root, places.swept, 'folder'))
    if (/^\d{8}t\d{9}z$/.test(name) && name < last) await disk.remove(inLake(root, `${places.swept}/${name}`))
}

/**
 * Removes the remains of crashed runs and returns their paths; called when a writing command starts. Data files stay
 * for a week in a folder of their own. With `later`, includes files of versions that the journal lost.
 */
export async function sweep(ledger: Ledger, deps: CommitDeps, later = false): Promise<readonly string[]> {
  const disk = deps.disk ?? realDisk
  const { root } = ledger
  await using _lock = await lockCommit(root, { ...deps.holder, since: deps.nowMicros() }, deps)
  try {
    await closePrivate(root)
    await ledger.catchUp()
    const paths = await findOrphans(ledger, later)
    const now = deps.nowMicros()
    await dropSwept(disk, root, now)
    for (const path of paths) {
      if (dataVersion(path) !== undefined) await setAside(disk, root, path, now)
      else await disk.remove(inLake(root, path))
      if (!path.startsWith(`${places.spool}/`)) continue
      const name = spoolLock(decodeSegment(path.slice(places.spool.length + 1)))
      for (const left of [lockFile(name), holderFile(name)]) await disk.remove(inLake(root, left))
    }
    return paths
  } catch (error) {
    throw diskError(error, 'sweeping')
  }
}
