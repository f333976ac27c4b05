import { writeCheckpoint } from '../ledger/checkpoint.ts'
import { commit, type CommitDeps, type StagedFile, bytesProblem } from '../ledger/commit.ts'
import { checkJournal, checkRuns, type JournalHealth } from './damage-journal.ts'
import { checkMarker, type DamagedFile, staleLocks } from './damage-files.ts'
import { realDisk } from '../store/disk.ts'
import { filesOnDisk, type HeldFile, mergedFrom } from '../ledger/held.ts'
import { entryFile, holderFile, inLake, parseRegistryFile, places, registryFile, versioned } from '../store/layout.ts'
import { Ledger } from '../ledger/ledger.ts'
import { lockCommit, whileFree } from '../store/lock.ts'
import { setMarker } from '../store/marker.ts'
import { sweep, unnamed } from '../ledger/sweep.ts'
import { listedAs } from '../ledger/draft.ts'
import { moveStray, setAside, strayFolders, unfitEntry } from '../ledger/aside.ts'

/** Makes the ledger anew from the journal. */
export async function rebuildLedger(root: string, deps: CommitDeps): Promise<string> {
  await using _lock = await lockCommit(root, { ...deps.holder, since: deps.nowMicros() }, deps)
  const ledger = await Ledger.rebuild(root)
  const { version } = ledger.head()
  ledger.close()
  return `ledger.sqlite was made anew from the journal, up to version ${version}`
}

/**
 * Folds what the sound ledger knows into a checkpoint, so that the journal no longer needs the entries that are lost,
 * and sets damaged files of the journal aside. A ledger that does not reach past the damage, or that knows of files which
 * are not there, does not do: then only a torn last entry is set aside, which takes the lake back to the version before.
 */
export async function mendJournal(root: string, deps: CommitDeps): Promise<string[]> {
  await using _lock = await lockCommit(root, { ...deps.holder, since: deps.nowMicros() }, deps)
  const journal = await checkJournal(root)
  using ledger = Ledger.asLeft(root)
  const { version: seen = 0 } = ledger?.head() ?? {}
  const reaches = ledger !== undefined && seen >= Math.max(0, ...journal.broken)
  if (!reaches) return await dropTornLast(root, journal)
  if (seen <= journal.newest && journal.broken.length === 0 && journal.torn.length === 0) return []
  if (seen > journal.newest && (await lostBeyond(ledger, journal.newest)).length > 0) return []
  const done: string[] = []
  for (const path of journal.torn) done.push(await keepAside(root, path))
  const version = await writeCheckpoint(deps.disk ?? realDisk, ledger)
  return [...done, `a checkpoint of version ${version} was folded from the ledger`]
}

async function keepAside(root: string, path: string): Promise<string> {
  await realDisk.move(inLake(root, path), inLake(root, `${path}.damaged`))
  return `${path} was set aside as ${path}.damaged`
}

/** A last entry that nobody can read any more, and no index has seen: what it brought was never told of by anything else. */
async function dropTornLast(root: string, { newest, broken, torn }: JournalHealth): Promise<string[]> {
  if (broken.length !== 1 || broken[0] !== newest || !torn.includes(entryFile(newest))) return []
  const done = await keepAside(root, entryFile(newest))
  return [
    `${done}: version ${newest} is lost, the lake is at version ${newest - 1} again, and fetch asks for what it brought`,
  ]
}

/** The files of versions that only the ledger knows and that are not there as they were: it is a copy's, and too young. */
export async function lostBeyond(ledger: Ledger, newest: number): Promise<string[]> {
  const lost: string[] = []
  for (const file of filesOnDisk(ledger))
    if (file.added_version > newest && (await bytesProblem(ledger.root, file))) lost.push(file.path)
  return lost
}

/**
 * Writes the marker of this lake in place of one that is not, which is kept aside: only where all data files that the
 * journal names are there, and no others, for those might be the lake that the marker names.
 */
export async function mendMarker(ledger: Ledger, damaged: readonly DamagedFile[], deps: CommitDeps): Promise<string[]> {
  const { root } = ledger
  const { lake, provider } = ledger.head()
  if (lake === null || provider === null || (await checkMarker(ledger)).length === 0) return []
  if (damaged.some(({ damage }) => damage.severity === 'damage')) return []
  for await (const _ of unnamed(ledger)) return []
  await using _lock = await lockCommit(root, { ...deps.holder, since: deps.nowMicros() }, deps)
  const done = await keepAside(root, places.marker)
  await setMarker(deps.disk ?? realDisk, root, lake, provider.synthetic)
  return [`${done} and written anew`]
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
  const paths = await sweep(ledger, deps)
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
