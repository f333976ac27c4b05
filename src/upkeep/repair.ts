import { writeCheckpoint } from '../ledger/checkpoint.ts'
import { commit, type CommitDeps, type StagedFile, bytesProblem } from '../ledger/commit.ts'
import { checkJournal, checkRuns } from './damage-journal.ts'
import { checkMarker, type DamagedFile, staleLocks, stampsHealth } from './damage-files.ts'
import { realDisk } from '../store/disk.ts'
import { filesOnDisk, type HeldFile, mergedFrom } from '../ledger/held.ts'
import { Engine } from '../store/engine.ts'
import { isFolder, isThere } from '../store/files.ts'
import { footersOf } from '../store/footers.ts'
import {
  holderFile,
  inLake,
  parseJournalName,
  parseRegistryFile,
  places,
  registryFile,
  versioned,
} from '../store/layout.ts'
import { stampFile } from '../ledger/stamps.ts'
import { Ledger } from '../ledger/ledger.ts'
import { lockCommit, whileFree } from '../store/lock.ts'
import { setMarker } from '../store/marker.ts'
import { sweep, unnamed } from '../ledger/sweep.ts'
import { listedAs } from '../ledger/draft.ts'
import { moveStray, setAside, strayFolders, unfitEntry } from '../ledger/aside.ts'

/** Makes the ledger anew from the journal. */
export async function rebuildIndex(root: string, deps: CommitDeps): Promise<string[]> {
  await using _lock = await lockCommit(root, { ...deps.holder, since: deps.nowMicros() }, deps)
  const done = await clearFolder(root, places.ledger)
  const ledger = await Ledger.rebuild(root)
  const { version } = ledger.head()
  ledger.close()
  return [...done, `${places.ledger} was made anew from the journal, up to version ${version}`]
}

/** Folds what the ledger knows into a checkpoint, and sets what of the journal is damaged up to there aside. */
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

/** Sets the last entries aside, which nobody can read any more and no index has seen. */
export async function goBack(root: string, deps: CommitDeps): Promise<string[]> {
  await using _lock = await lockCommit(root, { ...deps.holder, since: deps.nowMicros() }, deps)
  const { torn, reach, newest } = await checkJournal(root)
  const done: string[] = []
  for (const path of torn.filter((one) => versionOf(one) > reach)) done.push(await keepAside(root, path))
  const lost = newest === reach + 1 ? `version ${newest} is lost` : `versions ${reach + 1} to ${newest} are lost`
  return [`${done.join(', ')}: ${lost}, the lake is at version ${reach} again, and fetch asks for what was brought`]
}

async function keepAside(root: string, path: string): Promise<string> {
  let free = `${path}.damaged`
  for (let n = 2; isThere(inLake(root, free)); n++) free = `${path}.damaged-${n}`
  await realDisk.move(inLake(root, path), inLake(root, free))
  return `${path} was set aside as ${free}`
}

/** Moves a folder aside that stands where a file belongs. */
async function clearFolder(root: string, path: string): Promise<string[]> {
  return (await isFolder(inLake(root, path))) ? [await keepAside(root, path)] : []
}

/** The same for the files of the views. */
export async function clearViews(root: string): Promise<string[]> {
  const done: string[] = []
  for (const path of [places.database, places.script, places.manifest]) done.push(...(await clearFolder(root, path)))
  return done
}

/**
 * Writes the marker of this lake in place of one that is not, which is kept aside: only where no data file stands here
 * that is not this lake's by its footer, for it might be of the lake that the marker names.
 */
export async function mendMarker(ledger: Ledger, deps: CommitDeps): Promise<string[]> {
  const { root } = ledger
  const { lake, provider } = ledger.head()
  if (lake === null || provider === null || (await checkMarker(ledger)).length === 0) return []
  const strange: string[] = []
  for await (const path of unnamed(ledger)) strange.push(path)
  if (!(await areOf(root, lake, strange))) return []
  const held = filesOnDisk(ledger)
  const sound = held.length === 0 || (await anySound(root, held))
  if (!sound) return []
  await using _lock = await lockCommit(root, { ...deps.holder, since: deps.nowMicros() }, deps)
  const done = await keepAside(root, places.marker)
  await setMarker(deps.disk ?? realDisk, root, lake, provider.synthetic)
  return [`${done} and written anew`]
}

/** Whether each of these files tells in its footer that it is of a lake. */
async function areOf(root: string, lake: string, paths: readonly string[]): Promise<boolean> {
  if (paths.length === 0) return true
  if (paths.some((path) => !path.endsWith('.parquet'))) return false
  using engine = await Engine.open()
  const files = paths.map((path) => inLake(root, path))
  const footers = await footersOf(engine, files).catch(() => undefined)
  return footers !== undefined && files.every((file) => footers.get(file)?.lake === lake)
}

async function anySound(root: string, files: readonly HeldFile[]): Promise<boolean> {
  for (const file of files) if (!(await bytesProblem(root, file))) return true
  return false
}

/** Does without notes of stamps that are damaged, or lack what was kept for them: they are set aside, and the ledger forgets them. */
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

/** Puts the files back from which a damaged merged one was made, where they are still there and sound. */
export async function restoreMerged(
  ledger: Ledger,
  damaged: readonly DamagedFile[],
  deps: CommitDeps,
): Promise<string[]> {
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

/** The files that the merged one was made of, one by one or through an earlier merge, if none is missing or damaged. */
async function soundOriginals(ledger: Ledger, merged: HeldFile): Promise<HeldFile[]> {
  const found: HeldFile[] = []
  for (const file of mergedFrom(ledger, merged)) {
    const usable = file.dropped_version === null || parseRegistryFile(file.path) !== undefined
    const sound = usable && !(await bytesProblem(ledger.root, file))
    const instead = sound ? [file] : await soundOriginals(ledger, file)
    if (instead.length === 0) return []
    found.push(...instead)
  }
  return found
}

/** One that the lake had let go of, and that was made again, takes a new name: a name that was let go of stays so. */
function relisted(file: HeldFile, label: string, version: number, n: number): StagedFile {
  const listed = listedAs(file, { label })
  if (file.dropped_version === null) return listed
  const path = registryFile(file.table, versioned(version, `restored-${n}`), null)
  return { ...listed, temporary: file.path, path }
}

/** Takes out of the journal's way what no version can be made past: a last entry that cannot be applied, and folders. */
export async function clearJournal(root: string, deps: CommitDeps): Promise<string[]> {
  const disk = deps.disk ?? realDisk
  await using _lock = await lockCommit(root, { ...deps.holder, since: deps.nowMicros() }, deps)
  const done: string[] = []
  for (const name of await strayFolders(root)) done.push(await moveStray(disk, root, name, deps.nowMicros()))
  const unfit = await unfitEntry(root)
  if (unfit) done.push(await setAside(disk, root, unfit))
  return done
}
