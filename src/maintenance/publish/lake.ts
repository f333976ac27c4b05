import { basename } from 'node:path'
import { LakeError, usage } from '../../base/errors.ts'
import type { CommitDeps } from '../../lake/ledger/commit.ts'
import { storedStamps, storedVersions, liveFiles } from '../../lake/ledger/index-queries.ts'
import { type JobDeps, type Run, runName, withLake } from '../../lake/ledger/job.ts'
import { Ledger } from '../../lake/ledger/ledger.ts'
import { findOrphans, openSpool, type Spool } from '../../lake/ledger/spool-sweep.ts'
import { dataPlaces, refuseStranger } from '../../lake/store/new-lake.ts'
import { diskError, isWritable, realDisk } from '../../lake/store/disk.ts'
import { dataVersion, inLake, places } from '../../lake/store/layout.ts'
import { type Lock, lockCommit, lockJob, pin, pullLock } from '../../lake/store/lock.ts'
import {
  below,
  type Destination,
  type DestinationDeps,
  folderAt,
  isLocal,
  onTheWay,
  type Published,
  requireApart,
  type Web,
} from './destination.ts'
import type { Micros } from '../../base/time.ts'
import { type CopyDeps, copyLake, type CopySummary } from './lake-copy.ts'
import { journalAt } from './lake-journal.ts'
import type { Catalogue } from '../../catalog/catalogue.ts'
import { beginDatabase } from '../../lake/store/database.ts'
import { isThere, readText } from '../../lake/store/files.ts'
import { lakeMarker, markedSynthetic, mirrorMarker, mirrorOf, parseMarker } from '../../lake/store/marker.ts'
import { closePrivate } from '../../lake/store/private-folders.ts'
import { buildViews } from '../../query/views/build.ts'
import { namedByViews } from '../../query/views/manifest.ts'
import { destinationOf } from './s3.ts'

/** A run that changes a destination, over a lake with at least one version. */
export interface PublishingRun extends Run {
  readonly lake: string
  /** Folder for files in transfer; removed at the end. */
  readonly spool: Spool
}

/** Runs a job that writes to a destination: one at a time, and none without something to publish. */
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
const lakeFolder = 'lake'

/** Lake and version to copy, and the name of the run; `scratch` is a folder for files in transfer. */
interface LakeInput {
  readonly root: string
  readonly to: Destination
  readonly version: number
  readonly run: string
  readonly scratch: string
  readonly thorough?: boolean
}

/** Copies journal, stamps and the files of a version under `lake/` of a destination, for `pitlake pull`. */
export async function publishLake(input: LakeInput, deps: CommitDeps & CopyDeps): Promise<CopySummary> {
  const { root, to, version, run, scratch, thorough = false } = input
  const from = folderAt(root, { disk: deps.disk ?? realDisk, mark: run })
  await using _ = await pin(root, run, { ...deps.holder, since: deps.nowMicros() })
  const place = { from, to: below(to, lakeFolder), scratch, near: false }
  return await copyLake({ ...place, until: version, mirrorOf: (lake) => `lake ${lake}`, thorough }, deps)
}

/** Lists files that killed copies left while they were in transfer to a lake. */
async function leftOnTheWay(to: Destination): Promise<readonly Published[]> {
  const folders = [...dataPlaces, places.journal, places.runs, places.stamps]
  const all = await Promise.all(folders.map(async (place) => await to.list(place)))
  return all.flat().filter(({ path }) => basename(path).startsWith(onTheWay))
}

/**
 * Lists the files under `lake/` that its newest version does not name, nor a version that was the newest after an
 * instant, nor a stamped one.
 */
export async function lakeGoing(to: Destination, ledger: Ledger, before: Micros): Promise<readonly Published[]> {
  const { newest } = await journalAt(below(to, lakeFolder))
  if (newest === 0) return []
  const ends = new Map(storedVersions(ledger).map(({ version, committed_at }) => [version, committed_at]))
  const keptPaths = new Set<string>()
  for (const { path, removed_version: end } of ledger.statement('SELECT path, removed_version FROM files').iterate())
    if (end === null || Number(end) > newest || (ends.get(Number(end)) ?? before) > before) keptPaths.add(String(path))
  for (const { version } of storedStamps(ledger))
    for (const { path } of liveFiles(ledger, { version })) keptPaths.add(path)
  const all = await Promise.all(dataPlaces.map(async (place) => await to.list(`${lakeFolder}/${place}`)))
  return all.flat().filter(({ path, modified }) => {
    const relativePath = path.slice(lakeFolder.length + 1)
    return dataVersion(relativePath) !== undefined && !keptPaths.has(relativePath) && modified * 1_000_000 <= before
  })
}

/** Lake to back up, and its destination. */
interface BackupInput {
  readonly root: string
  readonly to: Destination
  /** Whether to read existing files, too, and to copy again what is damaged. */
  readonly thorough: boolean
}

/** Result of a backup. */
export interface BackupSummary extends CopySummary {
  /** URI of the destination. */
  readonly destination: string
  /** Number of files that were removed because no needed version names them. */
  readonly removed: number
}

/**
 * Brings `lake/` of a destination up to the newest version of a lake, also while others write to it: it copies what is
 * missing, and then removes what that version and the stamped results do not need.
 */
export async function backup(input: BackupInput, deps: JobDeps & CopyDeps): Promise<BackupSummary> {
  const { root, to, thorough } = input
  requireApart(root, to, 'destination')
  // A publish to `lake/` is the same copy: one at a time.
  return await publishing({ root, name: 'backup' }, deps, async ({ ledger, id, spool, begin }) => {
    const { version } = ledger.head()
    const done = { files: 0, bytes: 0 }
    await using behind = new AsyncDisposableStack()
    // The copy must not contain a run that never ends: this one is recorded after it.
    behind.defer(async () => await begin({ version, destination: to.uri }, () => done))
    const copied = await publishLake({ root, to, version, run: id, scratch: spool.file('lake'), thorough }, deps)
    done.files = copied.files
    done.bytes = copied.bytes
    const going = await lakeGoing(to, ledger, deps.nowMicros())
    const left = (await leftOnTheWay(below(to, lakeFolder))).map(({ path }) => `${lakeFolder}/${path}`)
    const gonePaths = new Set([...going.map(({ path }) => path), ...left])
    for (const path of gonePaths) await to.remove(path)
    return { destination: to.uri, ...copied, removed: gonePaths.size }
  })
}

/** Source and target of a mirror. */
interface PullInput {
  /** The mirror's folder. */
  readonly root: string
  /** A destination of `publish --lake`, its `lake` folder, or any lake. */
  readonly source: string
  /** Folder in which a relative source begins; the process's working directory by default. */
  readonly cwd?: string
  readonly catalogue: Catalogue
  /** Whether to read existing files, too, and to copy again what is damaged. */
  readonly thorough: boolean
  /** Whether the copy becomes an independent lake in the end, to which others may write. */
  readonly own?: boolean
}

/** Dependencies of a pull. */
interface PullDeps extends CommitDeps, CopyDeps {
  readonly web: Web
}

/** Result of a pull. */
export interface PullSummary extends CopySummary {
  /** URI of the lake that was pulled. */
  readonly source: string
  /** Number of files that were removed because no version names them any more. */
  readonly removed: number
}

/**
 * Brings a mirror up to the newest version of its lake without contacting a provider; starts a mirror if the folder is
 * empty. A restored lake is a mirror until all of it is there.
 */
export async function pull(input: PullInput, deps: PullDeps): Promise<PullSummary> {
  const { root, own: isOwn = false } = input
  const name = isOwn ? 'restore' : 'pull'
  const disk = deps.disk ?? realDisk
  const run = runName(deps, name)
  const reach: DestinationDeps = { disk, mark: run, web: deps.web }
  await refuseOwn(root)
  const from = await lakeIn(destinationOf(input.source, input.cwd === undefined ? reach : { ...reach, cwd: input.cwd }))
  requireApart(root, from, 'source')
  try {
    await using resources = new AsyncDisposableStack()
    resources.use(await lockJob(root, pullLock, { ...deps.holder, since: deps.nowMicros() }))
    const spool = resources.use(await openSpool(root, run, deps))
    resources.use(await pinned(from, run, deps))
    const inPlace = await namedByViews(root)
    const to = folderAt(root, reach)
    const copy = { from, to, mirrorOf: () => from.uri, scratch: spool.file('.'), near: true, thorough: input.thorough }
    // A journal without an index would be a lake that has lost it.
    const beforeJournal = (): void => beginDatabase(inLake(root, places.ledger))
    const copied = await copyLake({ ...copy, beforeJournal }, deps)
    await rename(root, to, from.uri)
    using ledger = await openMirror(root, deps)
    await buildViews(ledger, { catalogue: input.catalogue, deps })
    const removed = await tidy(ledger, to, inPlace, deps)
    if (isOwn) await to.replace(places.marker, lakeMarker(copied.lake, (await markedSynthetic(root)) === true))
    return { source: from.uri, ...copied, removed }
  } catch (error) {
    throw diskError(error, name)
  }
}

/** Refuses an independent lake, or a folder that is no lake: neither is a mirror. */
async function refuseOwn(root: string): Promise<void> {
  if ((await mirrorOf(root)) !== null) return
  if (![places.journal, places.ledger, places.marker].some((place) => isThere(inLake(root, place))))
    return await refuseStranger(root, false)
  throw usage(`lake ${root}`, {
    expected: 'an empty folder, or a mirror',
    got: 'a lake of its own',
    next: 'name another folder with --data',
  })
}

/** Finds the lake at a place: in the folder that publish writes it to, or there itself. */
async function lakeIn(place: Destination): Promise<Destination> {
  const inside = below(place, lakeFolder)
  return (await journalAt(inside)).newest > 0 ? inside : place
}

/** Pins a lake on this machine against vacuum, if it can be written to; what vanishes elsewhere is listed again. */
async function pinned(from: Destination, run: string, deps: PullDeps): Promise<Lock | undefined> {
  if (!isLocal(from) || !isThere(from.uri) || !isWritable(from.uri) || (await mirrorOf(from.uri)) !== null)
    return undefined
  return await pin(from.uri, run, { ...deps.holder, since: deps.nowMicros() })
}

/** Writes the latest source of the mirror into its marker. */
async function rename(root: string, to: Destination, source: string): Promise<void> {
  const marker = parseMarker(await readText(inLake(root, places.marker)))
  if (!marker || marker.mirrorOf === source) return
  await to.replace(places.marker, mirrorMarker(marker.lake, (await markedSynthetic(root)) === true, source))
}

/** Opens the index; rebuilds it if it was lost or had seen an entry that was rewritten. */
async function openMirror(root: string, deps: PullDeps): Promise<Ledger> {
  try {
    return await Ledger.open(root)
  } catch (error) {
    if (!(error instanceof LakeError) || error.kind !== 'integrity') throw error
    await using _lock = await lockCommit(root, { ...deps.holder, since: deps.nowMicros() }, deps)
    return await Ledger.rebuild(root)
  }
}

/**
 * Removes what no version of the journal names any more, and what killed runs left in transfer. Files that the views
 * named when the pull began stay until the next one: a session may have opened them.
 */
async function tidy(ledger: Ledger, to: Destination, inPlace: (path: string) => boolean, deps: PullDeps) {
  const disk = deps.disk ?? realDisk
  await closePrivate(ledger.root)
  const orphans = (await findOrphans(ledger)).filter((path) => !inPlace(path))
  orphans.push(...(await leftOnTheWay(to)).map(({ path }) => path))
  for (const path of new Set(orphans)) await disk.remove(inLake(ledger.root, path))
  return new Set(orphans).size
}
