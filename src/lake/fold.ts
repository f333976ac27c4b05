import { readCheckpoint, writeCheckpoint } from './checkpoint.ts'
import type { CommitDeps } from './commit.ts'
import { realDisk } from './disk.ts'
import type { Micros } from './entry.ts'
import { versionAt } from './held.ts'
import { listJournal } from './journal.ts'
import { checkpointFile, entryFile } from './layout.ts'
import { Ledger } from './ledger.ts'
import { lockCommit } from './lock.ts'

/** So many entries are read quickly enough; more are folded. */
const longest = 128

/** Folds the journal into a checkpoint when many entries have come since the last one; the entries stay. */
export async function foldJournal(ledger: Ledger, deps: CommitDeps, most: number = longest): Promise<number | null> {
  const { entries, checkpoints } = await listJournal(ledger.root)
  if ((entries.at(-1) ?? 0) - (checkpoints.at(-1) ?? 0) < most) return null
  const lock = await lockCommit(ledger.root, { ...deps.holder, since: deps.nowMicros() }, deps)
  try {
    await ledger.catchUp()
    return await writeCheckpoint(deps.disk ?? realDisk, ledger)
  } finally {
    await lock.release()
  }
}

/**
 * The journal's files that a checkpoint makes superfluous and that are older than an instant. The checkpoint that
 * is relied on is read first: a damaged one frees nothing.
 */
export async function foldedBefore(ledger: Ledger, before: Micros): Promise<string[]> {
  const { entries, checkpoints } = await listJournal(ledger.root)
  const newest = checkpoints.at(-1) ?? 0
  const until = Math.min(newest, versionAt(ledger, before))
  const old = entries.filter((version) => version <= until)
  const beaten = until === newest ? checkpoints.filter((version) => version < newest) : []
  if (old.length + beaten.length === 0 || !(await isSound(ledger.root, newest))) return []
  return [...old.map(entryFile), ...beaten.map(checkpointFile)]
}

async function isSound(root: string, version: number): Promise<boolean> {
  const index = await Ledger.inMemory(root, 0)
  try {
    await readCheckpoint(root, version, index)
    return true
  } catch {
    return false
  } finally {
    index.close()
  }
}
