import { LakeError } from '../errors.ts'
import { heldStamps, liveFiles } from '../ledger/held.ts'
import { listStamps, readStamp, type StampedFile, stampFile } from '../ledger/stamps.ts'
import { makeFolder, realDisk } from '../store/disk.ts'
import { dataVersion, inLake, places } from '../store/layout.ts'
import type { Destination, Published } from './destination.ts'
import { inPlace, type Staged, unsoundAt, Vanished } from './lake-journal.ts'

/** What a lake needs to be whole elsewhere. */
interface Needed {
  /** Data files and what stamped results were made with, each once; a digest may be its beginning only. */
  readonly files: readonly StampedFile[]
  /** Notes of stamped results, staged; after the files that they name. */
  readonly notes: readonly string[]
}

/** The live files of the staged version, and all that its stamped results need; their notes are staged, too. */
export async function neededBy({ root, index }: Staged, from: Destination, near?: Destination): Promise<Needed> {
  const files = new Map<string, StampedFile>()
  const take = ({ path, bytes, sha256 }: StampedFile): void => {
    if (dataVersion(path) === undefined && !isCopy(path))
      throw unsoundAt(from, `file ${path}`, 'a name that this program gives', 'another')
    files.set(path, { path, bytes, sha256 })
  }
  for (const file of liveFiles(index)) take(file)
  const listed = await from.list(places.stamps)
  const before = heldStamps(index)
  for (const { version } of before)
    for (const file of liveFiles(index, { version })) if (file.dropped_version === null) take(file)
  if (before.length > 0) for (const file of listed) if (isCopy(file.path)) take({ ...file, sha256: toldBy(file.path) })
  const notes = await stageNotes(root, from, listed, near)
  const own: string[] = []
  const { lake, version } = index.head()
  for (const id of notes) {
    const stamp = await readStamp(root, id).catch((error: unknown) => {
      throw error instanceof LakeError ? inPlace(error, from) : error
    })
    if (stamp.lake !== lake || stamp.version > version) continue
    for (const file of stamp.files) take(file)
    own.push(stampFile(id))
  }
  return { files: [...files.values()], notes: own }
}

/** Whether a path is one of what `stamp` copies. */
function isCopy(path: string): boolean {
  return /^stamps\/[\w-]+\.(?:sql|parquet)$/.test(path)
}

/** What the name of such a copy says of its digest: stamps of before the notes say nothing else. */
function toldBy(path: string): string {
  return /^stamps\/([0-9a-f]{32})\.sql$/.exec(path)?.[1] ?? /-([0-9a-f]{16})-\d{10,}-/.exec(path)?.[1] ?? ''
}

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
