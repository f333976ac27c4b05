import { basename } from 'node:path'
import type { CommitDeps } from '../ledger/commit.ts'
import { heldStamps, heldVersions, liveFiles } from '../ledger/held.ts'
import type { Ledger } from '../ledger/ledger.ts'
import { dataPlaces } from '../store/begin.ts'
import { realDisk } from '../store/disk.ts'
import { dataVersion, places } from '../store/layout.ts'
import { pin } from '../store/lock.ts'
import { below } from './below.ts'
import type { Micros } from '../time.ts'
import type { Destination, Published } from './destination.ts'
import { folderAt, onTheWay } from './folder.ts'
import { type Copied, type CopyDeps, copyLake } from './lake-copy.ts'
import { journalAt } from './lake-journal.ts'

/** The folder of a destination that a lake is copied to. */
export const lakeFolder = 'lake'

/** Which version of which lake is copied, under the name of which run; `scratch` is a folder for what is on the way. */
export interface LakeInput {
  readonly root: string
  readonly to: Destination
  readonly version: number
  readonly run: string
  readonly scratch: string
  readonly thorough?: boolean
}

/** Copies journal, stamps and the files of a version under `lake/` of a destination, for `pitlake pull`. */
export async function publishLake(input: LakeInput, deps: CommitDeps & CopyDeps): Promise<Copied> {
  const { root, to, version, run, scratch, thorough = false } = input
  const from = folderAt(root, { disk: deps.disk ?? realDisk, mark: run })
  await using _ = await pin(root, run, { ...deps.holder, since: deps.nowMicros() })
  const place = { from, to: below(to, lakeFolder), scratch, near: false }
  return await copyLake({ ...place, until: version, mirrorOf: (lake) => `lake ${lake}`, thorough }, deps)
}

/** What killed copies have left of files that were on their way to a lake. */
export async function leftOnTheWay(to: Destination): Promise<readonly Published[]> {
  const folders = [...dataPlaces, places.journal, places.runs, places.stamps]
  const all = await Promise.all(folders.map(async (place) => await to.list(place)))
  return all.flat().filter(({ path }) => basename(path).startsWith(onTheWay))
}

/**
 * The files under `lake/` that its newest version does not name, nor a version that was the newest after an instant, nor
 * a stamped one.
 */
export async function lakeGoing(to: Destination, ledger: Ledger, before: Micros): Promise<readonly Published[]> {
  const { newest } = await journalAt(below(to, lakeFolder))
  if (newest === 0) return []
  const ends = new Map(heldVersions(ledger).map(({ version, committed_at }) => [version, committed_at]))
  const kept = new Set<string>()
  for (const { path, removed_version: end } of ledger.statement('SELECT path, removed_version FROM files').iterate())
    if (end === null || Number(end) > newest || (ends.get(Number(end)) ?? before) > before) kept.add(String(path))
  for (const { version } of heldStamps(ledger)) for (const { path } of liveFiles(ledger, { version })) kept.add(path)
  const all = await Promise.all(dataPlaces.map(async (place) => await to.list(`${lakeFolder}/${place}`)))
  return all.flat().filter(({ path, modified }) => {
    const own = path.slice(lakeFolder.length + 1)
    return dataVersion(own) !== undefined && !kept.has(own) && modified * 1_000_000 <= before
  })
}
