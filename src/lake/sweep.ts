import { rm } from 'node:fs/promises'
import type { CommitDeps } from './commit.ts'
import { diskError, filesBelow, makeFolder, namesIn, realDisk, statOf } from './disk.ts'
import { filesOnDisk } from './held.ts'
import { decodeSegment, holderFile, inLake, lockFile, places, spoolFolder } from './layout.ts'
import type { Ledger } from './ledger.ts'
import { isFree, lockCommit, tryLock } from './lock.ts'

/** The folder in which a run keeps what it has not committed; nobody sweeps it while the run lives. */
export interface Spool {
  /** The path of a file in it, relative to the lake. */
  path(name: string): string
  /** The same, absolute. */
  file(name: string): string
  /** Removes the folder with everything in it. */
  close(): Promise<void>
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
    await makeFolder(disk, inLake(root, folder))
  } catch (error) {
    await lock.release()
    throw diskError(error, 'spool')
  }
  return {
    path: (file) => `${folder}/${file}`,
    file: (file) => inLake(root, `${folder}/${file}`),
    close: async () => {
      await disk.remove(inLake(root, folder))
      await lock.release()
      await rm(inLake(root, lockFile(name)), { force: true })
    },
  }
}

function spoolLock(run: string): string {
  return `spool-${run}`
}

/** What was swept: paths relative to the lake, and their bytes. */
export interface Swept {
  readonly paths: readonly string[]
  readonly bytes: number
}

/** What no entry names and no living run owns; finds only, takes nothing away. Hold the commit lock to act on it. */
export async function findOrphans(ledger: Ledger): Promise<string[]> {
  const { root } = ledger
  const named = new Set(filesOnDisk(ledger).map((file) => file.path))
  const orphans: string[] = []
  for (const folder of [places.points, places.assets, places.registry])
    for (const name of await filesBelow(inLake(root, folder))) {
      const path = `${folder}/${name}`
      if (!named.has(path)) orphans.push(path)
    }
  for (const name of await namesIn(inLake(root, places.journal)))
    if (name.startsWith('.tmp-')) orphans.push(`${places.journal}/${name}`)
  for (const name of await namesIn(inLake(root, places.spool)))
    if (isFree(root, spoolLock(decodeSegment(name)))) orphans.push(`${places.spool}/${name}`)
  return orphans
}

/** Removes what crashed runs left behind; called when a writing command starts. */
export async function sweep(ledger: Ledger, deps: CommitDeps): Promise<Swept> {
  const disk = deps.disk ?? realDisk
  const { root } = ledger
  const lock = await lockCommit(root, { ...deps.holder, since: deps.nowMicros() }, deps)
  try {
    await ledger.catchUp()
    const paths = await findOrphans(ledger)
    let bytes = 0
    for (const path of paths) {
      bytes += (await statOf(inLake(root, path)))?.size ?? 0
      await disk.remove(inLake(root, path))
      if (!path.startsWith(`${places.spool}/`)) continue
      const name = spoolLock(decodeSegment(path.slice(places.spool.length + 1)))
      for (const left of [lockFile(name), holderFile(name)]) await disk.remove(inLake(root, left))
    }
    return { paths, bytes }
  } catch (error) {
    throw diskError(error, 'sweeping')
  } finally {
    await lock.release()
  }
}
