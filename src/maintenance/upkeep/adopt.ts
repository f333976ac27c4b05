import { requireFileError } from '../../lake/store/file-errors.ts'
import { posix } from 'node:path'
import { isThere, readText } from '../../lake/store/files.ts'
import type { Catalogue } from '../../catalog/catalogue.ts'
import { LakeError, usage } from '../../base/errors.ts'
import { applyEntry } from '../../lake/ledger/apply.ts'
import { ownData } from '../../lake/store/new-lake.ts'
import { writeCheckpoint } from '../../lake/ledger/checkpoint.ts'
import type { CommitDeps } from '../../lake/ledger/commit.ts'
import { type Disk, entriesIn, makeFolder, realDisk } from '../../lake/store/disk.ts'
import { Engine } from '../../lake/store/engine.ts'
import {
  type Json,
  decodeEntry,
  encodeEntry,
  type Entry,
  type FileEntry,
  layoutNumber,
  type Progress,
  type SeriesRow,
} from '../../lake/ledger/entry.ts'
import { revisableAnew, revisableIn } from '../../sources/points/revisable.ts'
import { storedAcceptances, packViolations, standingDifferences } from '../../lake/ledger/differences.ts'
import { loadCheckpointIndex } from '../../lake/ledger/checkpoint-writer.ts'
import { appendEntry, listJournal, readEntry } from '../../lake/ledger/journal.ts'
import { dataVersion, entryFile, inLake, places } from '../../lake/store/layout.ts'
import { Ledger } from '../../lake/ledger/ledger.ts'
import { lockCommit } from '../../lake/store/lock.ts'
import { markedSynthetic, readMarker, setMarker } from '../../lake/store/marker.ts'
import {
  entryOf,
  observedIn,
  pointsEntry,
  seriesIn,
  type FoundFile,
  readFound,
  type LeftOut,
  type LostFolder,
} from './adopt-files.ts'
import { sortPoints, sortRows } from './adopt-points.ts'
import { adoptRegistry } from './adopt-registry.ts'
import { foundFolder, isLakeLost } from './judgement.ts'
import { countStrayDataFiles } from '../../lake/store/parquet.ts'
import { formatCount } from '../../base/figures.ts'

/** Dependencies of adopting a lost lake, in addition to its files. */
export interface Adoption {
  readonly catalogue: Catalogue
  /** Whether the configured provider makes its data up; null if none is configured, or it is unknown. */
  readonly synthetic: boolean | null
}

/**
 * Files to move aside before the journal is rebuilt. The plan is written down first: a run that was killed continues
 * with the same.
 */
interface Plan {
  readonly folder: string
  /** The newest version that any found file speaks of. */
  readonly version: number
  readonly moves: readonly LeftOut[]
}

const planFile = 'adopting.json'
const planDone = 'adopted.json'
const entryKept = 'entry.json'

/**
 * Paths that refer to versions no journal explains any more; the ledger moves first, so that the rest is not taken for
 * a beginning.
 */
const aside = [
  places.ledger,
  `${places.ledger}-wal`,
  `${places.ledger}-shm`,
  places.journal,
  places.runs,
  places.stamps,
  places.spool,
  places.exports,
  places.database,
  places.script,
  places.manifest,
]

/**
 * Rebuilds the journal of a lake that lost it, from its data files: those that are sound and in which each row occurs
 * once. All others move to `found-<instant>/`; nothing is removed. The checkpoint's appearing is the commit.
 */
export async function adoptLost(root: string, adopting: Adoption, deps: CommitDeps): Promise<string[]> {
  const disk = deps.disk ?? realDisk
  await using _lock = await lockCommit(root, { ...deps.holder, since: deps.nowMicros() }, deps)
  using engine = await Engine.open(':memory:')
  const revisable = revisableIn(adopting.catalogue)
  const opened: LostFolder = { engine, root, revisable }
  if (!(await isLakeLost(root))) return []
  const lake = await lakeOf(root, (await countStrayDataFiles(root)).lakes)
  const synthetic = (await markedSynthetic(root)) ?? adopting.synthetic
  if (synthetic === null) throw unknownProvider(root)
  const unfinishedAdoption = await unfinished(root)
  if (unfinishedAdoption) await moveAside(disk, root, unfinishedAdoption)
  const stock = await takeStock(opened, lake)
  if (stock.listed.length === 0) throw nothingLeft(root)
  const plan = unfinishedAdoption ?? (await planned(disk, root, stock, deps.nowMicros()))
  await moveAside(disk, root, { ...plan, moves: [...plan.moves, ...stock.others] })
  await setMarker(disk, root, lake, synthetic)
  const { series, progress } = await seriesIn(opened, stock.listed, adopting.catalogue)
  const version = Math.max(plan.version, stock.version) + 1
  const state = { ...stock.state, ...revisableAnew(revisable, stock.listed) }
  const entry: Entry = {
    schema_version: layoutNumber,
    lake,
    version,
    committed_at: Math.max(Math.floor(deps.nowMicros()), stock.observed + 1),
    program: deps.program,
    previous: null,
    job: 'adopt',
    run: `adopt-${version}`,
    provider: { synthetic },
    files: { add: stock.listed, remove: [], drop: [] },
    series,
    progress,
    ...emptyEntry,
    state,
    adopted: { moved: plan.moves.length, folder: plan.folder },
    ...(await recordIn(inLake(root, plan.folder), lake, series)),
  }
  await publish(disk, root, plan.folder, entry)
  return inWords(stock, series, progress, version, plan)
}

/** Fields of an entry that are empty here. */
const emptyEntry = { coverage: [], violations: [], findings: [], requests: [], verified: [], rules: null }

/** Finds the id of the lake: the marker's, or without one that which all footers agree on. */
async function lakeOf(root: string, lakes: readonly string[]): Promise<string> {
  const [only] = lakes
  const id = (await readMarker(root)) ?? (lakes.length === 1 ? only : undefined)
  if (id !== undefined) return id
  throw new LakeError('integrity', {
    subject: `lake ${root}`,
    expected: 'data of one lake',
    got: lakes.length === 0 ? 'none that name theirs' : lakes.join(' and '),
    next: 'put what is of another lake aside, or run pitlake doctor --repair: it moves all of it',
  })
}

/** The data files of a lost lake. */
interface FoundStock {
  /** Files that the new journal will list. */
  readonly listed: readonly FileEntry[]
  /** Files that move aside, each with the reason. */
  readonly others: readonly LeftOut[]
  /** State of the registry for the new entry. */
  readonly state: { readonly [key: string]: Json }
  /** Reason why no file of the registry is listed; null if some are, or if there is none. */
  readonly registry: string | null
  /** Newest version named by any file. */
  readonly version: number
  /** Latest instant at which anything in the files was observed, microseconds; 0 if none is known. */
  readonly observed: number
  /** Number of listed files without a digest in their footer. */
  readonly unproved: number
}

/** Reads every data file and decides which ones the new journal lists. */
async function takeStock(folder: LostFolder, lake: string): Promise<FoundStock> {
  const { root } = folder
  const sound: FoundFile[] = []
  const unfit: LeftOut[] = []
  let version = 0
  for await (const path of ownData(root)) {
    const found = await readFound(folder, path, lake)
    version = Math.max(version, dataVersion(path) ?? 0, 'version' in found ? found.version : 0)
    if ('why' in found) unfit.push(found)
    else sound.push(found)
  }
  const at = (place: string) => (file: { readonly path: string }) => file.path.startsWith(`${place}/`)
  const points = await sortPoints(folder, sound.filter(at(places.points)))
  const assets = await sortRows(folder, sound.filter(at(places.assets)))
  const inRegistry = at(places.registry)
  const registry = await adoptRegistry(folder, sound.filter(inRegistry), unfit.filter(inRegistry))
  const listed: FileEntry[] = []
  for (const file of points.kept) listed.push(await pointsEntry(folder, file))
  for (const file of assets.kept) listed.push(await entryOf(root, { file, label: '', meta: {} }))
  for (const listing of registry.listings) listed.push(await entryOf(root, listing))
  let observed = 0
  for (const file of sound) observed = Math.max(observed, await observedIn(folder, file))
  const rest = unfit.filter((file) => !inRegistry(file))
  const others = [...rest, ...points.others, ...assets.others, ...registry.others]
  const keptPaths = new Set(listed.map(({ path }) => path))
  const unproved = sound.filter(({ path, digest }) => digest === null && keptPaths.has(path)).length
  return { listed, others, state: registry.state, registry: registry.refused, version, observed, unproved }
}

/** Finds the plan of a run that was killed on the way; undefined if there is none. */
async function unfinished(root: string): Promise<Plan | undefined> {
  for (const { name } of await entriesIn(root)) {
    const path = inLake(root, `${name}/${planFile}`)
    if (!/^found-\d{8}t\d{9}z$/.test(name) || !isThere(path)) continue
    const { version, moves } = JSON.parse(await readText(path)) as Plan
    const movedFiles = moves.filter(
      (move) => aside.includes(move.path) || dataVersion(posix.normalize(move.path)) !== undefined,
    )
    return { folder: name, version, moves: movedFiles }
  }
  return undefined
}

/** Whether a run that took up a lost lake here was killed before its end. */
export const isHalfAdopted = async (root: string): Promise<boolean> => (await unfinished(root)) !== undefined

/** Writes the entry that is in the checkpoint, and then that nothing is left to be done. */
export async function endAdoption(root: string, deps: CommitDeps): Promise<void> {
  const disk = deps.disk ?? realDisk
  // Another one may be at its end, too.
  await using _lock = await lockCommit(root, { ...deps.holder, since: deps.nowMicros() }, deps)
  const plan = await unfinished(root)
  if (!plan) return
  const text = await readText(inLake(root, `${plan.folder}/${entryKept}`))
  const { entry, digest } = decodeEntry(text, entryKept)
  const { entries } = await listJournal(root)
  if (!entries.includes(entry.version)) await appendEntry(disk, root, entry, 'adopt', { text, digest })
  await disk.move(inLake(root, `${plan.folder}/${planFile}`), inLake(root, `${plan.folder}/${planDone}`))
  await disk.syncFolder(inLake(root, plan.folder))
}

async function planned(disk: Disk, root: string, { others, version }: FoundStock, now: number): Promise<Plan> {
  const folder = foundFolder(now)
  const about = 'it speaks of versions that no journal explains any more'
  const folders = aside.filter((path) => isThere(inLake(root, path))).map((path) => ({ path, why: about }))
  const plan = { folder, version, moves: [...folders, ...others] }
  await makeFolder(disk, inLake(root, folder))
  const temporary = inLake(root, `${folder}/.tmp-${planFile}`)
  await disk.write(temporary, `${JSON.stringify(plan)}\n`)
  await disk.move(temporary, inLake(root, `${folder}/${planFile}`))
  await disk.syncFolder(inLake(root, folder))
  return plan
}

async function moveAside(disk: Disk, root: string, { folder, moves }: Plan): Promise<void> {
  const touched = new Set<string>()
  for (const { path } of moves) {
    const from = inLake(root, path)
    const to = inLake(root, `${folder}/${path}`)
    if (!isThere(from)) continue
    if (isThere(to))
      throw usage(to, { expected: 'a free name', got: 'a file', next: 'put it aside, then run this again' })
    await makeFolder(
      disk,
      inLake(root, posix.dirname(`${folder}/${path}`)),
      path.startsWith(places.raw) ? 0o700 : 0o777,
    )
    await disk.move(from, to)
    for (const folderName of [posix.dirname(path), posix.dirname(`${folder}/${path}`)]) touched.add(folderName)
  }
  for (const place of touched) await disk.syncFolder(inLake(root, place))
}

/** Reads what the newest sound checkpoint and the readable entries of a lost journal have on record of these series. */
async function recordIn(folder: string, lake: string, series: readonly SeriesRow[]) {
  const { entries, checkpoints } = await listJournal(folder)
  using stack = new DisposableStack()
  let index = stack.use(await Ledger.inMemory(folder, 0))
  for (const version of checkpoints) {
    const checkpointIndex = stack.adopt(await loadCheckpointIndex(folder, version), (index) => index?.close())
    if (checkpointIndex?.head().lake === lake) index = checkpointIndex
  }
  const knownIds = new Set(series.map(({ id }) => id))
  const ofKnownSeries = <T extends { readonly series: string }>(rows: readonly T[] = []): T[] =>
    rows.filter((row) => knownIds.has(row.series))
  for (const version of entries.filter((entry) => entry > index.head().version)) {
    const sealed = await readEntry(folder, version).catch((error: unknown) => {
      requireFileError(error, `reading ${entryFile(version)}`)
      return undefined
    })
    if (sealed?.entry.lake !== lake) continue
    const { violations, incidents, passed, accepted } = sealed.entry
    const facts = {
      violations: ofKnownSeries(violations),
      incidents: ofKnownSeries(incidents),
      passed: ofKnownSeries(passed),
      accepted: ofKnownSeries(accepted),
    }
    const alone = { ...emptyEntry, files: { add: [], remove: [], drop: [] }, progress: [], state: {} }
    const entry: Entry = { ...sealed.entry, ...alone, forgotten: [], regained: [], uncovered: [], series, ...facts }
    index.transaction(() => applyEntry(index, { ...sealed, entry }))
  }
  const standing = standingDifferences(
    index,
    series.map(({ id }) => id),
  )
  const accepted = storedAcceptances(index).filter((acceptance) =>
    standing.some(({ accepted: id }) => id === acceptance.id),
  )
  return {
    ...packViolations(standing.map(({ accepted: _accepted, ...violation }) => violation)),
    ...(accepted.length > 0 && { accepted }),
  }
}

/** Publishes the checkpoint, which commits in one step; the entry in it is kept next to it until that can follow. */
async function publish(disk: Disk, root: string, folder: string, entry: Entry): Promise<void> {
  using index = await Ledger.inMemory(root, 0)
  const { text } = encodeEntry(entry)
  const rehearsed = index.rehearse(text, entryFile(entry.version))
  index.transaction(() => applyEntry(index, rehearsed))
  await disk.write(inLake(root, `${folder}/${entryKept}`), text)
  await writeCheckpoint(disk, index)
  ;(await Ledger.rebuild(root)).close()
}

function inWords(
  { listed, registry, state, unproved }: FoundStock,
  series: readonly SeriesRow[],
  progress: readonly Progress[],
  version: number,
  { folder, moves }: Plan,
): string[] {
  const points = progress.reduce((sum, line) => sum + line.points, 0)
  const paths = new Set(listed.map(({ path }) => path))
  const reasons = Map.groupBy(moves, ({ why }) => why)
  const hasState = Object.keys(state).length > 0
  return [
    `a journal was made anew: version ${version} lists ${paths.size} files with ${formatCount(points)} points ` +
      `of ${series.length} series`,
    ...(unproved === 0
      ? []
      : [`${unproved} of these files were read whole, but their footers tell no digest to prove their rows by`]),
    ...(hasState
      ? ['the history of the registry was taken up; its cursor is lost, the next sync begins with a snapshot']
      : []),
    ...(registry === null ? [] : [`the registry was moved to ${folder}/registry/: ${registry}`]),
    'lost with the journal: coverage (the next fetch asks again), requests, versions, earlier datings, and ' +
      'violations but for those of entries that can be read',
    ...[...reasons].map(
      ([why, files]) =>
        `${files.length} moved to ${folder}/: ${why} (${files
          .slice(0, 3)
          .map(({ path }) => path)
          .join(', ')}${files.length > 3 ? ', …' : ''})`,
    ),
  ]
}

function unknownProvider(root: string): LakeError {
  return usage(`lake ${root}`, {
    expected: 'a configured provider, to know whether the data is real or synthetic: lake.json does not say',
    got: 'none in the configuration',
    next: 'set PITLAKE_METRICS_URL (or PITLAKE_REGISTRY_URL) to the provider of these data',
  })
}

function nothingLeft(root: string): LakeError {
  return new LakeError('integrity', {
    subject: `lake ${root}`,
    expected: 'data files that hold together without a journal',
    got: 'none',
    next: 'run pitlake doctor --repair: it moves all of them and removes nothing',
  })
}
