import { requireFileError } from '../../lake/store/file-errors.ts'
import { dirname } from 'node:path'
import { writeCheckpoint } from '../../lake/ledger/checkpoint.ts'
import { bytesProblem, commit, type CommitDeps, sha256File, type StagedFile } from '../../lake/ledger/commit.ts'
import { checkJournal, checkRuns, setAside, strayFolders, unfitEntry } from './damage-journal.ts'
import { checkMarker, type DamagedFile, staleLocks, stampsHealth, takenPlaces } from './findings.ts'
import { type Disk, exists, makeFolder, realDisk } from '../../lake/store/disk.ts'
import { filesOnDisk, type StoredFile, listInstead, liveFiles, mergedFrom } from '../../lake/ledger/index-queries.ts'
import { Engine } from '../../lake/store/engine.ts'
import { isFolder, isThere } from '../../lake/store/files.ts'
import { footersOf } from '../../lake/store/parquet.ts'
import {
  dataVersion,
  holderFile,
  inLake,
  parseJournalName,
  parseRegistryFile,
  places,
  registryFile,
  versionedName,
} from '../../lake/store/layout.ts'
import { forgetHeadFile, headProblems } from '../../trust/heads/stored.ts'
import { stampFile } from '../../lake/ledger/stamps.ts'
import { Ledger } from '../../lake/ledger/ledger.ts'
import { RebuiltIndex } from '../../lake/ledger/rebuilt-index.ts'
import { lockCommit, whileFree } from '../../lake/store/lock.ts'
import { setMarker } from '../../lake/store/marker.ts'
import { openSpool, type Spool, sweep, findUnnamedFiles } from '../../lake/ledger/spool-sweep.ts'
import { listedAs } from '../../lake/ledger/draft.ts'
import { LakeError, reasonIn } from '../../base/errors.ts'
import { makeLakeFolder } from '../../lake/store/private-folders.ts'
import type { Resources } from '../../sources/registry/bodies.ts'
import { foldAgain } from '../../sources/registry/commit.ts'
import { sha256 } from '../../lake/ledger/entry.ts'

/** Rebuilds the ledger from the journal. */
export async function rebuildIndex(root: string, deps: CommitDeps): Promise<string[]> {
  await using _lock = await lockCommit(root, { ...deps.holder, since: deps.nowMicros() }, deps)
  const done = await clearFolder(root, places.ledger)
  const ledger = await Ledger.rebuild(root)
  const { version } = ledger.head()
  ledger.close()
  return [...done, `${places.ledger} was made anew from the journal, up to version ${version}`]
}

/** Writes what the ledger knows into a checkpoint, and sets aside what is damaged in the journal up to there. */
export async function foldIndex(root: string, deps: CommitDeps): Promise<string[]> {
  await using _lock = await lockCommit(root, { ...deps.holder, since: deps.nowMicros() }, deps)
  const { torn } = await checkJournal(root)
  using ledger = Ledger.asLeft(root)
  if (ledger === undefined) return []
  const { version } = ledger.head()
  const done: string[] = []
  for (const path of torn) if (versionOf(path) <= version) done.push(await keepAside(root, path))
  await writeCheckpoint(deps.disk ?? realDisk, ledger)
  return [...done, `a checkpoint of version ${version} was folded from the ledger`]
}

const versionOf = (path: string): number => parseJournalName(path.slice(places.journal.length + 1))?.version ?? 0

/** Sets aside the last entries, which are unreadable and which no index has seen. */
export async function goBack(root: string, deps: CommitDeps): Promise<string[]> {
  await using _lock = await lockCommit(root, { ...deps.holder, since: deps.nowMicros() }, deps)
  const { torn, reach, newest } = await checkJournal(root)
  const done: string[] = []
  for (const path of torn.filter((file) => versionOf(file) > reach)) done.push(await keepAside(root, path))
  const lostVersions =
    newest === reach + 1 ? `version ${newest} is lost` : `versions ${reach + 1} to ${newest} are lost`
  return [
    `${done.join(', ')}: ${lostVersions}, the lake is at version ${reach} again, and fetch asks for what was brought`,
  ]
}

async function keepAside(root: string, path: string): Promise<string> {
  let free = `${path}.damaged`
  for (let n = 2; isThere(inLake(root, free)); n++) free = `${path}.damaged-${n}`
  await realDisk.move(inLake(root, path), inLake(root, free))
  return `${path} was set aside as ${free}`
}

/** Moves a folder aside that is in the place of a file. */
async function clearFolder(root: string, path: string): Promise<string[]> {
  return (await isFolder(inLake(root, path))) ? [await keepAside(root, path)] : []
}

/** Moves folders aside that are in the place of files of the views. */
export async function clearViews(root: string): Promise<string[]> {
  const done: string[] = []
  for (const path of [places.database, places.script, places.manifest]) done.push(...(await clearFolder(root, path)))
  return done
}

/**
 * Replaces the marker of a different lake by that of this lake, and keeps the old one aside: only if every data file
 * here is of this lake by its footer, for others might be of the lake that the marker names.
 */
export async function mendMarker(ledger: Ledger, deps: CommitDeps): Promise<string[]> {
  const { root } = ledger
  const { lake, provider } = ledger.head()
  if (lake === null || provider === null || (await checkMarker(ledger)).length === 0) return []
  const strange: string[] = []
  for await (const path of findUnnamedFiles(ledger)) strange.push(path)
  if (!(await areOf(root, lake, strange))) return []
  const storedFiles = filesOnDisk(ledger)
  const sound = storedFiles.length === 0 || (await anySound(root, storedFiles))
  if (!sound) return []
  await using _lock = await lockCommit(root, { ...deps.holder, since: deps.nowMicros() }, deps)
  const done = await keepAside(root, places.marker)
  await setMarker(deps.disk ?? realDisk, root, lake, provider.synthetic)
  return [`${done} and written anew`]
}

/** Whether each of these files names the lake in its footer. */
async function areOf(root: string, lake: string, paths: readonly string[]): Promise<boolean> {
  if (paths.length === 0) return true
  if (paths.some((path) => !path.endsWith('.parquet'))) return false
  using engine = await Engine.open()
  const files = paths.map((path) => inLake(root, path))
  const footers = await footersOf(engine, files).catch((error: unknown) => {
    requireFileError(error, 'reading the footers of the data files')
    return undefined
  })
  return footers !== undefined && files.every((file) => footers.get(file)?.lake === lake)
}

async function anySound(root: string, files: readonly StoredFile[]): Promise<boolean> {
  for (const file of files) if (!(await bytesProblem(root, file))) return true
  return false
}

/**
 * Drops notes of stamps that are damaged, or lack what was kept for them: they are set aside, and the ledger forgets
 * them.
 */
export async function forgetStamps(ledger: Ledger, thorough: boolean, deps: CommitDeps): Promise<string[]> {
  const { root } = ledger
  await using _lock = await lockCommit(root, { ...deps.holder, since: deps.nowMicros() }, deps)
  const { lost, torn } = await stampsHealth(ledger, thorough)
  const done: string[] = []
  for (const id of torn) done.push(await keepAside(root, stampFile(id)))
  const forget = ledger.statement('DELETE FROM stamps WHERE id = ?')
  for (const id of [...lost, ...torn]) forget.run(id)
  return [...done, ...lost.map((id) => `the stamp ${id}, whose note is lost, was forgotten`)]
}

/** Goes on without heads that are lost or changed: changed ones are set aside. */
export async function forgetHeads(ledger: Ledger, deps: CommitDeps): Promise<string[]> {
  const done: string[] = []
  for (const { kind, path } of await headProblems(ledger)) {
    if (kind === 'head_changed') done.push(await keepAside(ledger.root, path))
    await forgetHeadFile(ledger, path, deps)
    done.push(`${path} was forgotten`)
  }
  return done
}

/** Moves files aside that are in the place of folders of the layout. */
export async function clearPlaces(root: string): Promise<string[]> {
  const done: string[] = []
  for (const place of await takenPlaces(root)) done.push(await keepAside(root, place))
  return done
}

/** Folds what the ledger knows of runs whose files are lost into a checkpoint. */
export async function keepRuns(ledger: Ledger, deps: CommitDeps): Promise<string[]> {
  if ((await checkRuns(ledger)).length === 0) return []
  await using _lock = await lockCommit(ledger.root, { ...deps.holder, since: deps.nowMicros() }, deps)
  await ledger.catchUp()
  const version = await writeCheckpoint(deps.disk ?? realDisk, ledger)
  return [`what the ledger knows of lost runs was folded into a checkpoint of version ${version}`]
}

/** Removes what killed processes left behind. */
export async function tidy(ledger: Ledger, deps: CommitDeps): Promise<string[]> {
  const done: string[] = []
  for (const name of await staleLocks(ledger.root)) {
    const note = inLake(ledger.root, holderFile(name))
    await whileFree(ledger.root, name, async () => await (deps.disk ?? realDisk).remove(note))
    done.push(`${holderFile(name)} was removed`)
  }
  const paths = await sweep(ledger, deps, true)
  return [...done, ...paths.map((path) => `${path} was swept away`)]
}

/** Restores the files from which a damaged merged one was made, if they still exist and are sound. */
export async function restoreMerged(ledger: Ledger, damaged: readonly DamagedFile[], deps: CommitDeps) {
  const done: string[] = []
  for (const { file } of damaged) {
    if (file.removed_version !== null) continue
    const originals = await soundOriginals(ledger, file)
    const { provider } = ledger.head()
    if (originals.length === 0 || provider === null) continue
    const next = ledger.head().version + 1
    const label = `restored-${next}`
    const draft = {
      job: 'doctor',
      run: `doctor-${next}`,
      provider,
      remove: [file.path],
      drop: [file.path],
      add: originals.map((original, n) => relisted(original, label, next, n)),
    }
    await commit(ledger, draft, deps)
    done.push(`${file.path} was replaced by the ${originals.length} files that it was merged from`)
  }
  return done
}

/**
 * Finds the files that the merged one was made of, one by one or through an earlier merge; none if one is missing or
 * damaged.
 */
async function soundOriginals(ledger: Ledger, merged: StoredFile): Promise<StoredFile[]> {
  const found: StoredFile[] = []
  for (const file of mergedFrom(ledger, merged)) {
    const usable = file.dropped_version === null || parseRegistryFile(file.path) !== undefined
    const sound = usable && !(await bytesProblem(ledger.root, file))
    const instead = sound ? [file] : await soundOriginals(ledger, file)
    if (instead.length === 0) return []
    found.push(...instead)
  }
  return found
}

/** Lists a rebuilt file. If the lake had dropped it, the file gets a new name: a dropped name is never used again. */
function relisted(file: StoredFile, label: string, version: number, n: number): StagedFile {
  const listed = listedAs(file, { label })
  if (file.dropped_version === null) return listed
  const path = registryFile(file.table, versionedName(version, `restored-${n}`), null)
  return { ...listed, temporary: file.path, path }
}

/**
 * Takes out of the journal's way what no version can be made past: a last entry that cannot be applied, and folders.
 */
export async function clearJournal(root: string, deps: CommitDeps): Promise<string[]> {
  const disk = deps.disk ?? realDisk
  await using _lock = await lockCommit(root, { ...deps.holder, since: deps.nowMicros() }, deps)
  const done: string[] = []
  for (const name of await strayFolders(root)) done.push(await moveStray(disk, root, name, deps.nowMicros()))
  using rebuilt = new RebuiltIndex(root)
  const unfit = await unfitEntry(root, rebuilt)
  if (unfit) done.push(await setAside(disk, root, unfit))
  return done
}

/** Moves such a folder out of the way, whatever it contains. */
async function moveStray(disk: Disk, root: string, name: string, mark: number): Promise<string> {
  const target = `${places.aside}/${name}-${sha256(`${name} ${mark}`).slice(0, 8)}`
  await makeFolder(disk, inLake(root, places.aside))
  await disk.move(inLake(root, `${places.journal}/${name}`), inLake(root, target))
  return `${places.journal}/${name} was moved to ${target}`
}

/**
 * Rebuilds lost files of the registry from the bodies of the polls that made them: each poll is folded once more upon
 * the lake before it, and a file is used only if its bytes are those that the journal names. The file in its place is
 * set aside. Older files that the fold needs are made first; merged ones are left for their repair.
 */
export async function rebuildRegistry(
  ledger: Ledger,
  damaged: readonly DamagedFile[],
  resources: Resources | undefined,
  deps: CommitDeps,
) {
  const lostFiles = damaged.map(({ file }) => file).filter((file) => file.removed_version === null && isMade(file))
  const beyond = new Map<string, string>()
  const done: string[] = []
  if (lostFiles.length === 0 || resources === undefined) return { done, beyond }
  await using spool = await openSpool(ledger.root, `doctor-registry-${ledger.head().version}`, deps)
  const rebuilding: Rebuilding = { root: ledger.root, resources, deps, spool, sound: new Set(), tried: new Map(), done }
  for (const file of lostFiles.toSorted((a, b) => a.added_version - b.added_version)) {
    const why = await reasonOf(async () => await supply(rebuilding, ledger, file))
    if (why !== null) beyond.set(file.path, why)
  }
  return { done, beyond }
}

/** Returns why work cannot be done with what is left of the lake; null if it was done. */
async function reasonOf(work: () => Promise<unknown>): Promise<string | null> {
  try {
    await work()
    return null
  } catch (error) {
    if (error instanceof Unfoldable) return error.message
    requireFileError(error, 'rebuilding the registry')
    // The journal has its own finding with a remedy: here it is only the reason.
    if (error instanceof LakeError) return error.complaints.map(reasonIn).join(', ')
    throw error
  }
}

interface Rebuilding {
  readonly root: string
  readonly resources: Resources
  readonly deps: CommitDeps
  readonly spool: Spool
  /** Files that match the journal. */
  readonly sound: Set<string>
  /** Reasons why versions could not be folded again, by version; null if one was. */
  readonly tried: Map<number, string | null>
  readonly done: string[]
}

/** Whether a file was made of registry bodies; these themselves are not. */
const isMade = ({ path, table }: StoredFile): boolean => table !== 'raw' && parseRegistryFile(path) !== undefined

/** Makes every file of a version that is not as it should be; gives why not, if not. */
async function versionAgain(rebuilding: Rebuilding, version: number): Promise<string | null> {
  const triedBefore = rebuilding.tried.get(version)
  if (triedBefore !== undefined) return triedBefore
  const why = await reasonOf(async () => await makeAgain(rebuilding, version))
  rebuilding.tried.set(version, why)
  return why
}

async function makeAgain(rebuilding: Rebuilding, version: number): Promise<void> {
  using indexes = new DisposableStack()
  const at = async (until: number): Promise<Ledger> => {
    const index = indexes.use(await Ledger.inMemory(rebuilding.root, until))
    if (index.head().version !== until) throw new Unfoldable(`the journal cannot be read as of version ${until}`)
    return index
  }
  const before = await at(version - 1)
  const after = await at(version)
  const madeFiles = liveFiles(after).filter((file) => dataVersion(file.path) === version && isMade(file))
  for (const file of liveFiles(before).filter((candidate) => isMade(candidate))) {
    const supplied = await supply(rebuilding, before, file)
    if (supplied[0] !== file) listInstead(before, file, supplied)
  }
  for (const acceptShrink of [false, true]) {
    const folded = await foldAgain({ ...rebuilding, before, after, acceptShrink })
    for (const staged of folded)
      for (const file of madeFiles) if (file.path === staged.path) await put(rebuilding, file, staged.temporary)
    if (madeFiles.every(({ path }) => rebuilding.sound.has(path))) break
  }
}

class Unfoldable extends Error {}

/** Finds the sound files with a file's rows: itself, made first if it is lost, or those that it was merged from. */
async function supply(rebuilding: Rebuilding, index: Ledger, file: StoredFile): Promise<readonly StoredFile[]> {
  if (await isSound(rebuilding, file)) return [file]
  const inputs = mergedFrom(index, file)
  if (inputs.length > 0) {
    const stored: StoredFile[] = []
    for (const input of inputs) stored.push(...(await supply(rebuilding, index, input)))
    return stored
  }
  const why = await versionAgain(rebuilding, dataVersion(file.path) ?? 0)
  if (!rebuilding.sound.has(file.path))
    throw new Unfoldable(why ?? `${file.path} comes out with other bytes than it had`)
  return [file]
}

async function isSound({ root, sound }: Rebuilding, file: StoredFile): Promise<boolean> {
  if (sound.has(file.path)) return true
  if (await bytesProblem(root, file)) return false
  sound.add(file.path)
  return true
}

/** Puts a file in its place that is byte for byte what the journal names; a damaged one there is set aside. */
async function put(rebuilding: Rebuilding, file: StoredFile, temporary: string | null): Promise<void> {
  const { root, deps, done, sound } = rebuilding
  if (temporary === null || (await isSound(rebuilding, file))) return
  const copy = inLake(root, temporary)
  if ((await sha256File(copy)) !== file.sha256) return
  const disk = deps.disk ?? realDisk
  const full = inLake(root, file.path)
  if (await exists(full)) done.push(await keepAside(root, file.path))
  await disk.sync(copy)
  await makeLakeFolder(disk, root, dirname(file.path))
  await disk.move(copy, full)
  await disk.syncFolder(dirname(full))
  sound.add(file.path)
  done.push(`${file.path} was rebuilt from registry/raw, byte for byte`)
}
