import { posix } from 'node:path'
import { LakeError } from '../../base/errors.ts'
import { archived } from '../../lake/ledger/archived-rows.ts'
import { commit, type RewriteDeps, type StagedFile } from '../../lake/ledger/commit.ts'
import { foldJournal } from '../../lake/ledger/checkpoint-writer.ts'
import { type StoredFile, liveFiles } from '../../lake/ledger/index-queries.ts'
import { type JobDeps, type Result, runName, withLake } from '../../lake/ledger/job.ts'
import type { Ledger } from '../../lake/ledger/ledger.ts'
import { tryLock } from '../../lake/store/lock.ts'
import { isHistory, mergeFiles, Unmergeable } from './merge-files.ts'
import { mergeRecentFiles } from './merge-recent.ts'
import { isRecent, portionRows } from '../../sources/points/files.ts'
import { markOf, type Rewriting, withRewriting } from './rewrite.ts'
import { historyMerge, tieredMerge, filesToMerge } from './merge-plan.ts'
import { archiveRows } from './vacuum.ts'
import { providerOf } from '../../lake/ledger/provider.ts'
import { growingTables } from '../../sources/registry/columns.ts'

/** A partition whose files were left as they are, with the reason. */
export type Abandoned = Pick<StoredFile, 'table' | 'metric' | 'interval'> & {
  readonly reason: string
}

/** Result of a merge. */
export interface MergeSummary {
  /** Newest version of the lake. */
  readonly version: number
  /** Number of versions that the merge made. */
  readonly versions_made: number
  /** Number of partitions with merged files. */
  readonly partitions: number
  /** Number of rows in the new files. */
  readonly rows: number
  readonly files_removed: number
  readonly files_added: number
  /** Bytes of the removed files. */
  readonly bytes_before: number
  /** Bytes of the new files. */
  readonly bytes_after: number
  /** Partitions whose files were left as they are. */
  readonly abandoned: readonly Abandoned[]
  /** Whether an interrupt ended it early. */
  readonly stopped: boolean
}

/** Bytes of waiting files at which a version of merged files is made; the rest follows at the end. */
const batchBytes = 512_000_000

/** Merges every partition into one file in the encoding that suits it best, and folds the journal. */
export async function compact(root: string, deps: RewriteDeps & JobDeps): Promise<MergeSummary> {
  return await withLake({ root, name: 'compact', lock: 'merge' }, deps, async ({ id, ledger, begin }) => {
    const outcome = newOutcome()
    const all = partitions(ledger)
    await begin({ partitions: all.length, files: all.flat().length }, () => actualOf(outcome))
    await archiveRows(ledger, deps, undefined, id)
    await dissolve(ledger, deps, { run: id, job: 'compact' }, outcome)
    const left = outcome.stopped || outcome.abandoned.length > 0
    // A file that was written by a whole merge needs no other.
    const isMerged = (file: StoredFile): boolean => markOf(file) !== null
    const chosen = left ? [] : partitions(ledger).map((files) => filesToMerge(files, isMerged))
    const choice = { run: id, job: 'compact', measure: true, portion: portionRows, chosen }
    const summary = await mergeParts(ledger, deps, choice, outcome)
    await foldJournal(ledger, deps)
    return resultOf(summary)
  })
}

/**
 * Merges small files if a partition has too many of them; for the end of a run that added some. While another merge is
 * at work it does nothing. Failing costs nothing but the merge: the old files stay.
 */
export async function mergeSmallFiles(
  ledger: Ledger,
  deps: RewriteDeps,
  run: string = runName(deps, 'merge'),
  outcome: Outcome = newOutcome(),
): Promise<MergeSummary> {
  await using lock = await tryLock(ledger.root, 'merge', { ...deps.holder, since: deps.nowMicros() })
  if (!lock) return summaryOf(ledger, outcome)
  await archiveRows(ledger, deps, undefined, run)
  const chosen = partitions(ledger).map(dueMerge)
  const choice = { run, job: 'merge', measure: false, portion: portionRows, chosen }
  const summary = await mergeParts(ledger, deps, choice, outcome)
  await foldJournal(ledger, deps)
  return summary
}

/** Merges small files in a separate job. */
export async function mergeDue(root: string, deps: RewriteDeps & JobDeps): Promise<MergeSummary> {
  return await withLake({ root, name: 'merge' }, deps, async ({ id, ledger, begin }) => {
    const due = dueMerges(ledger)
    const outcome = newOutcome()
    if (due > 0) await begin({ partitions: due }, () => actualOf(outcome))
    return resultOf(await mergeSmallFiles(ledger, deps, id, outcome))
  })
}

/** Chooses the files of a partition that are to be merged at the end of a run. */
function dueMerge(files: readonly StoredFile[]): readonly StoredFile[] {
  return files.every(({ table }) => isHistory(table)) ? historyMerge(files) : tieredMerge(files)
}

/** Counts the partitions that `mergeSmallFiles` would merge now. */
export function dueMerges(ledger: Ledger): number {
  return partitions(ledger).filter((files) => dueMerge(files).length > 0).length
}

const mergeable: ReadonlySet<string> = new Set(['points', 'redated', 'metric_assets', ...archived, ...growingTables])

/** Whether files of a table may be merged; dated tables share files between dates and are left alone. */
const isMergeable = (table: string): boolean => mergeable.has(table) || isHistory(table)

/** Groups the live files by partition, in a fixed order. */
function partitions(ledger: Ledger): StoredFile[][] {
  const files = liveFiles(ledger).filter(({ table }) => isMergeable(table))
  const key = ({ table, metric, interval, label }: StoredFile) => JSON.stringify([table, metric, interval, label])
  return [...Map.groupBy(files, key).values()]
}

interface Choice {
  readonly run: string
  readonly job: string
  readonly measure: boolean
  /** Minimum rows of a partition in recent files that move to a file of its own. */
  readonly portion: number
  readonly chosen: readonly (readonly StoredFile[])[]
}

/** A merge that is written and waits for its commit. */
interface Ready {
  readonly inputs: readonly StoredFile[]
  readonly staged: readonly StagedFile[]
}

interface Outcome {
  readonly abandoned: Abandoned[]
  readonly merged: Ready[]
  versions: number
  stopped: boolean
}

/** Moves everything in recent files to its partitions, in one separate version. */
async function dissolve(ledger: Ledger, deps: RewriteDeps, by: Pick<Choice, 'run' | 'job'>, outcome: Outcome) {
  const chosen = [liveFiles(ledger, { table: 'points' }).filter(isRecent)]
  return await mergeParts(ledger, deps, { ...by, measure: false, portion: 1, chosen }, outcome)
}

/**
 * Moves recent points to their partitions, for a job that needs every point there; the caller has the lock of merges.
 */
export async function dissolveRecent(ledger: Ledger, deps: RewriteDeps, run: string, job: string): Promise<void> {
  const error = mergeVerdict(await dissolve(ledger, deps, { run, job }, newOutcome()))
  if (error !== null) throw error
}

const newOutcome = (): Outcome => ({ abandoned: [], merged: [], versions: 0, stopped: false })

function actualOf({ merged, versions }: Outcome) {
  const files = (of: (part: Ready) => readonly unknown[]): number => merged.flatMap(of).length
  return { versions, files_removed: files(({ inputs }) => inputs), files_added: files(({ staged }) => staged) }
}

function resultOf(value: MergeSummary): Result<MergeSummary> {
  return { value, stopped_by: value.stopped ? 'signal' : null, error: mergeVerdict(value) }
}

async function mergeParts(ledger: Ledger, deps: RewriteDeps, choice: Choice, outcome: Outcome): Promise<MergeSummary> {
  const chosen = choice.chosen.filter((files) => files.length > 0)
  if (chosen.length > 0)
    await withRewriting(
      ledger,
      deps,
      choice.run,
      async (rewriting) => await mergeAll(rewriting, { ...choice, chosen }, outcome),
    )
  return summaryOf(ledger, outcome)
}

async function mergeAll(rewriting: Rewriting, choice: Choice, outcome: Outcome): Promise<void> {
  const { chosen, job, measure, portion } = choice
  let ready: Ready[] = []
  let waiting = 0
  for (const [n, inputs] of chosen.entries()) {
    if (rewriting.deps.signal.aborted) {
      outcome.stopped = true
      break
    }
    try {
      const staged = inputs.every(isRecent)
        ? await mergeRecentFiles(rewriting, n, inputs, portion)
        : [await mergeFiles(rewriting, n, inputs, measure)]
      ready.push({ inputs, staged })
    } catch (error) {
      if (!(error instanceof Unmergeable)) throw error
      const { table = '', metric = null, interval = null } = inputs[0] ?? {}
      outcome.abandoned.push({ table, metric, interval, reason: error.message })
    }
    waiting += inputs.reduce((sum, file) => sum + file.bytes, 0)
    if (waiting < batchBytes) continue
    await exchangeFiles(rewriting, job, ready, outcome)
    ready = []
    waiting = 0
  }
  await exchangeFiles(rewriting, job, ready, outcome)
}

/** Commits a version in which the merged files replace the old ones; those that left the view meanwhile are dropped. */
async function exchangeFiles(rewriting: Rewriting, job: string, batch: readonly Ready[], outcome: Outcome) {
  if (batch.length === 0) return
  const { ledger, deps, run } = rewriting
  const ready: Ready[] = []
  const { made: news } = await commit(
    ledger,
    async () => {
      const live = new Set(liveFiles(ledger).map((file) => `${file.path} ${file.label}`))
      ready.push(...batch.filter(({ inputs }) => inputs.every((file) => live.has(`${file.path} ${file.label}`))))
      if (ready.length === 0) return null
      return {
        job,
        run,
        provider: providerOf(ledger),
        add: ready.flatMap(({ staged }) => staged),
        remove: ready.flatMap(({ inputs }) => inputs.map((file) => file.path)),
      }
    },
    deps,
  )
  if (!news) return
  outcome.merged.push(...ready)
  outcome.versions++
}

function summaryOf(ledger: Ledger, outcome: Outcome): MergeSummary {
  const { merged, abandoned, versions, stopped } = outcome
  const written = new Map(liveFiles(ledger).map((file) => [file.path, file.bytes]))
  // Files that one step wrote and the next one replaced are neither.
  const staged = merged.flatMap((part) => part.staged)
  const added = staged.filter(({ path }) => written.has(path))
  const passing = new Set(staged.map(({ path }) => path))
  const inputs = merged.flatMap((part) => part.inputs).filter(({ path }) => !passing.has(path))
  return {
    version: ledger.head().version,
    versions_made: versions,
    partitions: new Set(added.map(({ path }) => posix.dirname(path))).size,
    rows: added.reduce((sum, { rows }) => sum + rows, 0),
    files_removed: inputs.length,
    files_added: added.length,
    bytes_before: inputs.reduce((sum, file) => sum + file.bytes, 0),
    bytes_after: added.reduce((sum, { path }) => sum + (written.get(path) ?? 0), 0),
    abandoned,
    stopped,
  }
}

/**
 * Builds the error that a merge ends with: something on the disk is not what was committed, or it was stopped early.
 */
export function mergeVerdict({ abandoned, stopped }: MergeSummary): LakeError | null {
  if (abandoned.length > 0)
    return new LakeError(
      'integrity',
      abandoned.map(({ table, metric, interval, reason }) => ({
        subject: `${[metric ?? table, interval].filter((part) => part !== null).join(' ')} was not merged`,
        got: reason,
        next: 'run pitlake doctor',
      })),
    )
  return stopped ? new LakeError('stopped', { subject: 'stopped early', next: 'run the same command again' }) : null
}
