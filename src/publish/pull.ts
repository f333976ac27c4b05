import type { Catalogue } from '../catalog/catalogue.ts'
import { LakeError, usage } from '../errors.ts'
import type { CommitDeps } from '../ledger/commit.ts'
import { runName } from '../ledger/job.ts'
import { Ledger } from '../ledger/ledger.ts'
import { findOrphans, openSpool } from '../ledger/sweep.ts'
import { refuseStranger } from '../store/begin.ts'
import { beginDatabase } from '../store/database.ts'
import { diskError, isWritable, realDisk } from '../store/disk.ts'
import { isThere, readText } from '../store/files.ts'
import { inLake, places } from '../store/layout.ts'
import { type Lock, lockCommit, lockJob, pin, pullLock } from '../store/lock.ts'
import { lakeMarker, markedSynthetic, mirrorMarker, mirrorOf, parseMarker } from '../store/marker.ts'
import { closePrivate } from '../store/private.ts'
import { buildViews } from '../views/build.ts'
import { namedByViews } from '../views/manifest.ts'
import { below, type Destination, folderAt, isLocal, type DestinationDeps, requireApart } from './destination.ts'
import { type Copied, type CopyDeps, copyLake } from './lake-copy.ts'
import { journalAt } from './lake-journal.ts'
import { lakeFolder, leftOnTheWay } from './publish-lake.ts'
import { destinationOf } from './s3.ts'

/** What is mirrored, and where to. */
export interface PullInput {
  /** The mirror's folder. */
  readonly root: string
  /** A destination of `publish --lake`, its `lake` folder, or any lake. */
  readonly source: string
  /** Where a relative source begins; this process's folder where it is not said. */
  readonly cwd?: string
  readonly catalogue: Catalogue
  /** Reads what is here already, too, and brings anew what is not as it should be. */
  readonly thorough: boolean
  /** What comes is a lake of its own in the end: others may write to it. */
  readonly own?: boolean
}

/** What pulling needs of the world. */
export interface PullDeps extends CommitDeps, CopyDeps {
  readonly web: NonNullable<DestinationDeps['web']>
}

/** What a pull did. */
export interface Pulled extends Copied {
  readonly source: string
  /** What the source's vacuum had taken away, and leftovers of killed runs: these are gone here, too. */
  readonly removed: number
}

/**
 * Brings a mirror up to the newest version of its lake, asking no provider; a new one where the folder is empty. What
 * shall be a lake of its own is a mirror until all of it is there.
 */
export async function pull(input: PullInput, deps: PullDeps): Promise<Pulled> {
  const { root, own = false } = input
  const name = own ? 'restore' : 'pull'
  const disk = deps.disk ?? realDisk
  const run = runName(deps, name)
  const reach: DestinationDeps = { disk, mark: run, web: deps.web }
  await refuseOwn(root)
  const from = await lakeIn(destinationOf(input.source, input.cwd === undefined ? reach : { ...reach, cwd: input.cwd }))
  requireApart(root, from, 'source')
  try {
    await using held = new AsyncDisposableStack()
    held.use(await lockJob(root, pullLock, { ...deps.holder, since: deps.nowMicros() }))
    const spool = held.use(await openSpool(root, run, deps))
    held.use(await pinned(from, run, deps))
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
    if (own) await to.replace(places.marker, lakeMarker(copied.lake, (await markedSynthetic(root)) === true))
    return { source: from.uri, ...copied, removed }
  } catch (error) {
    throw diskError(error, name)
  }
}

/** A lake of its own, or a stranger's folder, is no mirror. */
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

/** The lake at a place: in the folder that publish writes it to, or there itself. */
async function lakeIn(place: Destination): Promise<Destination> {
  const inside = below(place, lakeFolder)
  return (await journalAt(inside)).newest > 0 ? inside : place
}

/** Holds vacuum back at a lake on this machine that can be told so; what vanishes elsewhere is looked for anew. */
async function pinned(from: Destination, run: string, deps: PullDeps): Promise<Lock | undefined> {
  if (!isLocal(from) || !isThere(from.uri) || !isWritable(from.uri) || (await mirrorOf(from.uri)) !== null)
    return undefined
  return await pin(from.uri, run, { ...deps.holder, since: deps.nowMicros() })
}

/** The marker says where the mirror came from last. */
async function rename(root: string, to: Destination, source: string): Promise<void> {
  const marker = parseMarker(await readText(inLake(root, places.marker)))
  if (!marker || marker.mirrorOf === source) return
  await to.replace(places.marker, mirrorMarker(marker.lake, (await markedSynthetic(root)) === true, source))
}

/** The index, made anew where it was lost or had seen an entry that was written anew. */
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
 * Takes away what no version of the journal names any more, and what killed runs left on the way. What the views named
 * when the pull began stays until the next one: somebody may have opened them.
 */
async function tidy(
  ledger: Ledger,
  to: Destination,
  inPlace: (path: string) => boolean,
  deps: PullDeps,
): Promise<number> {
  const disk = deps.disk ?? realDisk
  await closePrivate(ledger.root)
  const gone = (await findOrphans(ledger)).filter((path) => !inPlace(path))
  gone.push(...(await leftOnTheWay(to)).map(({ path }) => path))
  for (const path of new Set(gone)) await disk.remove(inLake(ledger.root, path))
  return new Set(gone).size
}
