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

/** Number of entries that are read quickly enough; more are folded. */
const longest = 128

/** Folds the journal into a checkpoint when many entries have come since the last one; the entries stay. */
export async function foldJournal(ledger: Ledger, deps: CommitDeps, most: number = longest): Promise<number | null> {
  const { newest, folded } = await listJournal(ledger.root)
  if (newest - folded < most) return null
  await using _lock = await lockCommit(ledger.root, { ...deps.holder, since: deps.nowMicros() }, deps)
  await ledger.catchUp()
  const version = await writeCheckpoint(deps.disk ?? realDisk, ledger)
  await dropFoldedRuns(ledger, deps)
  return version
}

/** Runs that followed a younger version keep their files, and younger ones their logs. */
const runsStay: Micros = 7 * 86_400_000_000

/**
 * Takes away the files of old runs that have ended: every opening would look at each of them. Two checkpoints hold all
 * of their lines, so that nothing goes that anybody is told, even where one of them is damaged later. Their logs go
 * into one for each day.
 */
async function dropFoldedRuns(ledger: Ledger, deps: CommitDeps): Promise<void> {
  const { root } = ledger
  const relied = (await listJournal(root)).checkpoints.at(-2)
  // Whoever copies the lake may have listed them.
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
 * The journal's files that a checkpoint makes superfluous and that are older than an instant. The checkpoint that
 * is relied on is read first: a damaged one frees nothing.
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
  } catch {
    index.close()
    return undefined
  }
}

/** A run that was killed never says that it has ended; so long after its beginning it has. */
const surelyEnded: Micros = 30 * 86_400_000_000

/** The files of runs that have ended and whose every line the checkpoint holds and follows an old version. */
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
