import { basename } from 'node:path'
import { usage } from '../errors.ts'
import type { CommitDeps } from '../ledger/commit.ts'
import { heldStamps, heldVersions, liveFiles } from '../ledger/held.ts'
import { type JobDeps, type Run, withLake } from '../ledger/job.ts'
import type { Ledger } from '../ledger/ledger.ts'
import { openSpool, type Spool } from '../ledger/sweep.ts'
import { dataPlaces } from '../store/begin.ts'
import { realDisk } from '../store/disk.ts'
import { dataVersion, places } from '../store/layout.ts'
import { pin } from '../store/lock.ts'
import { below, type Destination, folderAt, onTheWay, type Published, requireApart } from './destination.ts'
import type { Micros } from '../time.ts'
import { type Copied, type CopyDeps, copyLake } from './lake-copy.ts'
import { journalAt } from './lake-journal.ts'

/** A run of whoever changes a destination, of a lake that has a version. */
export interface PublishingRun extends Run {
  readonly lake: string
  /** For what is on the way; gone at the end. */
  readonly spool: Spool
}

/** The frame of every job that writes to a destination: one at a time, and none without something to publish. */
export async function publishing<T>(
  { root, name }: { readonly root: string; readonly name: string },
  deps: JobDeps,
  work: (run: PublishingRun) => Promise<T>,
): Promise<T> {
  return await withLake({ root, name, lock: 'publish' }, deps, async (run) => {
    const { lake } = run.ledger.head()
    if (lake === null)
      throw usage(`lake ${root}`, { expected: 'a lake with at least one version', next: 'run pitlake fetch' })
    await using spool = await openSpool(root, run.id, deps)
    return { value: await work({ ...run, lake, spool }), stopped_by: null, error: null }
  })
}

/** The folder of a destination that a lake is copied to. */
export const lakeFolder = 'lake'

/** Which version of which lake is copied, under the name of which run; `scratch` is a folder for what is on the way. */
interface LakeInput {
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

/** Which lake is kept a second time, and where. */
interface BackupInput {
  readonly root: string
  readonly to: Destination
  /** Reads what stands there already, too, and brings anew what is not as it should be. */
  readonly thorough: boolean
}

/** What a backup did. */
export interface BackedUp extends Copied {
  readonly destination: string
  /** Files there that its newest version needs no longer, and leftovers of killed copies: these are gone. */
  readonly removed: number
}

/**
 * Brings `lake/` of a destination up to the newest version of a lake, beside whatever writes to it: what is missing
 * travels, what that version and the stamped results do not need goes afterwards.
 */
export async function backup(input: BackupInput, deps: JobDeps & CopyDeps): Promise<BackedUp> {
  const { root, to, thorough } = input
  requireApart(root, to, 'destination')
  // What publish writes to `lake/` is the same copy: one at a time.
  return await publishing({ root, name: 'backup' }, deps, async ({ ledger, id, spool, begin }) => {
    const { version } = ledger.head()
    const done = { files: 0, bytes: 0 }
    await using behind = new AsyncDisposableStack()
    // The copy must not hold a run that never ends: this one is written down behind it.
    behind.defer(async () => await begin({ version }, () => done))
    const copied = await publishLake({ root, to, version, run: id, scratch: spool.file('lake'), thorough }, deps)
    done.files = copied.files
    done.bytes = copied.bytes
    const going = await lakeGoing(to, ledger, deps.nowMicros())
    const left = (await leftOnTheWay(below(to, lakeFolder))).map(({ path }) => `${lakeFolder}/${path}`)
    const gone = new Set([...going.map(({ path }) => path), ...left])
    for (const path of gone) await to.remove(path)
    return { destination: to.uri, ...copied, removed: gone.size }
  })
}
