import { type Advised, exitCode, LakeError } from '../../base/errors.ts'
import { diskError } from '../store/disk.ts'
import { instantName } from '../store/layout.ts'
import { lockJob } from '../store/lock.ts'
import { refuseMirror } from '../store/marker.ts'
import { type CommitDeps, noteRunFacts } from './commit.ts'
import type { Json } from './entry.ts'
import { Ledger } from './ledger.ts'
import { unwatched } from '../../base/stopwatch.ts'
import { proveLive } from './live-digest.ts'
import { sweep } from './spool-sweep.ts'

/** The state of the lake after a run's last commit. */
export interface RunEnd {
  readonly ledger: Ledger
  readonly run: string
  /** Number of versions that the run added. */
  readonly commits: number
  /** Number of requests that the run sent. */
  readonly requests: number
}

/** The dependencies of a job. */
export interface JobDeps extends CommitDeps {
  /**
   * Runs once after the last commit, also after an early stop, while the job's lock is taken and the ledger is open;
   * for the steps that follow (merging, views).
   */
  readonly atEnd?: (end: RunEnd) => Promise<void>
}

/** A job on the lake in a folder. */
export interface Job {
  /** The lake's folder. */
  readonly root: string
  /** Name in `runs`, such as `registry sync`. */
  readonly name: string
  /** The lock that it takes; without one it works alongside all others. */
  readonly lock?: string
}

/** The result of a run in numbers by name, with `requests` among them if it sends any. */
type Actual = Readonly<Record<string, number>>

/** One run of a job on its open lake. */
export interface Run {
  readonly id: string
  readonly job: string
  readonly ledger: Ledger
  /**
   * Records the beginning of the run and its plan. From then on its end is recorded in any case, with its result; a run
   * that never begins leaves no record.
   */
  readonly begin: (plan: Json, actual: () => Actual) => Promise<void>
}

/** An error by which a run ends, on record under a name of its own. */
export class NamedEndError extends LakeError {
  /** The value of `stopped_by` in the record of the run. */
  readonly stoppedBy: string

  constructor(stoppedBy: string, kind: 'integrity', complaint: Advised) {
    super(kind, complaint)
    this.stoppedBy = stoppedBy
  }
}

/** The result of a run that ended without being killed, whether complete or early. */
export interface Result<T> {
  readonly value: T
  readonly stopped_by: string | null
  /** The error with which its command ends nevertheless. */
  readonly error: LakeError | null
}

/** Opens the lake for a job, with its lock and without the remains of killed runs, and closes it in any case. */
export async function withLake<T>(job: Job, deps: JobDeps, work: (run: Run) => Promise<Result<T>>): Promise<T> {
  const { root, lock } = job
  await refuseMirror(root)
  await using _ = lock === undefined ? null : await lockJob(root, lock, { ...deps.holder, since: deps.nowMicros() })
  using ledger = await Ledger.open(root)
  proveLive(ledger)
  await sweep(ledger, deps)
  const { version } = ledger.head()
  const { id, requests, value } = await carriedOut(job, ledger, deps, work)
  const end = { ledger, run: id, commits: ledger.head().version - version, requests }
  await (deps.during ?? unwatched)('views', async () => await deps.atEnd?.(end))
  return value
}

/** Does the work and, if it has begun, records its result. */
async function carriedOut<T>(
  job: Job,
  ledger: Ledger,
  deps: CommitDeps,
  work: (run: Run) => Promise<Result<T>>,
): Promise<{ readonly id: string; readonly requests: number; readonly value: T }> {
  const id = runName(deps, job.name)
  const started_at = deps.nowMicros()
  let actual: (() => Actual) | undefined
  const begin: Run['begin'] = async (plan, soFar) => {
    const { command } = deps.holder
    await noteRunFacts(ledger, { id, job: job.name, command, started_at, plan }, deps.disk)
    actual = soFar
  }
  const ended = async (stopped_by: string | null, error: unknown): Promise<void> => {
    if (actual === undefined) return
    const ended_at = deps.nowMicros()
    const facts = { ended_at, stopped_by, exit_code: error === null ? 0 : exitCode(error) }
    const seconds = Math.round((ended_at - started_at) / 1000) / 1000
    await noteRunFacts(ledger, { id, ...facts, actual: { ...actual(), seconds } }, deps.disk)
  }
  try {
    const { value, stopped_by, error } = await work({ id, job: job.name, ledger, begin })
    await ended(stopped_by, error)
    return { id, requests: actual?.()['requests'] ?? 0, value }
  } catch (thrown) {
    const error = diskError(thrown, job.name)
    // The same disk may have caused the failure, so the first error is the one to report.
    await ended(error instanceof NamedEndError ? error.stoppedBy : 'error', error).catch(() => undefined)
    throw error
  }
}

/** Builds the id of a run from its start, its process, and its job, unless that is a fetch, whose requests are many. */
export function runName(deps: Pick<CommitDeps, 'nowMicros' | 'holder'>, job: string): string {
  return [instantName(deps.nowMicros()), deps.holder.pid, ...(job === 'fetch' ? [] : job.split(' '))].join('-')
}
