import { requireFileError } from '../store/file-errors.ts'
import { readCheckpoint, writeCheckpoint } from './checkpoint.ts'
import type { CommitDeps } from './commit.ts'
import { namesIn, realDisk, statOf } from '../store/disk.ts'
import type { Micros } from '../../base/time.ts'
import { versionAt } from './index-queries.ts'
import { listJournal } from './journal.ts'
import { checkpointFile, entryFile, inLake, places, runOf } from '../store/layout.ts'
import { Ledger } from './ledger.ts'
import { lockCommit, pinnedSince } from '../store/lock.ts'
import { gatherLogs, readFacts } from './run-facts.ts'

/** Largest number of entries that are read quickly enough; more are folded into a checkpoint. */
const longest = 128

/**
 * Writes a checkpoint of the journal if at least `most` entries follow the last one; the entries stay. Returns its
 * version; null if none was due.
 */
export async function foldJournal(ledger: Ledger, deps: CommitDeps, most: number = longest): Promise<number | null> {
  const { newest, folded } = await listJournal(ledger.root)
  if (newest - folded < most) return null
  await using _lock = await lockCommit(ledger.root, { ...deps.holder, since: deps.nowMicros() }, deps)
  await ledger.catchUp()
  const version = await writeCheckpoint(deps.disk ?? realDisk, ledger)
  await dropFoldedRuns(ledger, deps)
  return version
}

/** Age up to which runs keep their logs, and their files, which count by the version that they follow. */
const runsStay: Micros = 7 * 86_400_000_000

/**
 * Removes the files of old runs that have ended, because every opening of the lake would look at each of them. Two
 * checkpoints contain all of their lines, so no record is lost even if one of them is damaged later. The logs of these
 * runs are joined, one file for each day.
 */
async function dropFoldedRuns(ledger: Ledger, deps: CommitDeps): Promise<void> {
  const { root } = ledger
  const relied = (await listJournal(root)).checkpoints.at(-2)
  // A process that copies the lake may have listed them.
  if (relied === undefined || (await pinnedSince(root)) !== undefined) return
  using checkpointIndex = await loadCheckpointIndex(root, relied)
  const before = deps.nowMicros() - runsStay
  const disk = deps.disk ?? realDisk
  const files =
    checkpointIndex === undefined
      ? []
      : await foldedRuns(checkpointIndex, Math.min(relied, versionAt(ledger, before)), before)
  for (const file of files) await disk.remove(inLake(root, file))
  await gatherLogs(root, disk, before)
}

/**
 * Lists the journal's files that a checkpoint replaces and that are older than a timestamp. The newest checkpoint is
 * read first: a damaged one frees nothing.
 */
export async function foldedBefore(ledger: Ledger, before: Micros): Promise<string[]> {
  const { entries, checkpoints, folded } = await listJournal(ledger.root)
  const until = Math.min(folded, versionAt(ledger, before))
  const old = entries.filter((version) => version <= until)
  const beaten = until === folded ? checkpoints.filter((version) => version < folded) : []
  using checkpointIndex = folded === 0 ? undefined : await loadCheckpointIndex(ledger.root, folded)
  if (!checkpointIndex) return []
  const runs = await foldedRuns(checkpointIndex, until, before)
  return [...old.map(entryFile), ...beaten.map(checkpointFile), ...runs]
}

/** Reads the index that a checkpoint stores; undefined if the checkpoint is damaged. */
export async function loadCheckpointIndex(root: string, version: number): Promise<Ledger | undefined> {
  const index = await Ledger.inMemory(root, 0)
  try {
    await readCheckpoint(root, version, index)
    return index
  } catch (error) {
    index.close()
    requireFileError(error, `reading ${checkpointFile(version)}`)
    return undefined
  }
}

/** Age after which a run counts as ended; a run that was killed never records its end. */
const surelyEnded: Micros = 30 * 86_400_000_000

/**
 * Lists the files of runs that have ended, if the checkpoint contains all of their lines and they follow an old
 * version.
 */
async function foldedRuns(ledger: Ledger, until: number, before: Micros): Promise<string[]> {
  const folded: string[] = []
  const read = ledger.statement('SELECT offset FROM run_files WHERE name = ?')
  const run = ledger.statement('SELECT started_at, ended_at FROM runs WHERE id = ?')
  const instant = ledger.statement('SELECT committed_at FROM versions WHERE version = ?')
  for (const name of (await namesIn(inLake(ledger.root, places.runs))).toSorted()) {
    const { offset } = read.get(name) ?? {}
    const path = `${places.runs}/${name}`
    if (offset === undefined || (await statOf(inLake(ledger.root, path)))?.size !== Number(offset)) continue
    const last = (await readFacts(ledger.root, () => 0, [name])).at(-1)
    if (last === undefined || last.line.after > until || last.end !== Number(offset)) continue
    const { started_at, ended_at = null } = run.get(runOf(name)) ?? {}
    const since = Number(started_at ?? instant.get(last.line.after)?.['committed_at'] ?? before)
    if (ended_at !== null || since < before - surelyEnded) folded.push(path)
  }
  return folded
}
