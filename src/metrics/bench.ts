import { exitCode, type LakeError, usage } from '../errors.ts'
import { noteRunFacts } from '../ledger/commit.ts'
import type { Json } from '../ledger/entry.ts'
import { Ledger } from '../ledger/ledger.ts'
import { lockJob } from '../store/lock.ts'
import { sweep } from '../ledger/sweep.ts'
import type { Plan } from './plan.ts'
import { type IngestSummary, Tally } from './tally.ts'
import { type Bench, type BenchInput, type IngestDeps, type Job, withTools } from './tools.ts'
import { work } from './work.ts'

/** Opens the lake for a job that asks for points; no second one of its kind works beside it. */
export async function withBench<T>(
  input: BenchInput,
  deps: IngestDeps,
  job: Job,
  use: (bench: Bench) => Promise<T>,
): Promise<T> {
  const { url, key } = addressOf(input)
  const name = job.name === 'fetch' ? 'metrics' : 'verify'
  const lock = await lockJob(input.settings.data, name, { ...deps.holder, since: deps.nowMicros() })
  try {
    const ledger = await Ledger.open(input.settings.data)
    try {
      await sweep(ledger, deps)
      const at = new Date(deps.now()).toISOString().replaceAll(/[-:.]/g, '').toLowerCase()
      const run = [at, deps.holder.pid, ...(job.name === 'fetch' ? [] : [job.name])].join('-')
      return await use({ job, input, deps, ledger, url, key, run, tally: new Tally(ledger.head().version) })
    } finally {
      ledger.close()
    }
  } finally {
    await lock.release()
  }
}

/** Where and with which key to ask; what is not set is a mistake of the call. */
export function addressOf({ settings }: BenchInput): { readonly url: string; readonly key: string } {
  const { url, key } = settings.metrics
  if (url === null) throw unset('PITLAKE_METRICS_URL', 'the base address of the metrics API')
  if (key === null) throw unset('PITLAKE_METRICS_KEY', 'the key of the metrics API')
  return { url, key }
}

function unset(name: string, what: string): LakeError {
  return usage(name, {
    expected: what,
    got: 'nothing',
    next: `set ${name}, or start \`pitlake sandbox\` and use what it prints`,
  })
}

/** How a run is written down beside its numbers. */
interface Noted {
  /** Facts to be kept beside the plan. */
  readonly marks?: { readonly [name: string]: Json }
  readonly verdict: (summary: IngestSummary) => LakeError | null
}

/** Does the work of the plan and writes the run down: its plan before, what came of it afterwards. */
export async function recorded(bench: Bench, plan: Plan, { marks, verdict }: Noted): Promise<void> {
  const { job, deps, ledger, run, tally } = bench
  const { command } = deps.holder
  const started = deps.now()
  const facts = { ...plan.totals, ...marks }
  await noteRunFacts(ledger, { id: run, job: job.name, command, started_at: deps.nowMicros(), plan: facts }, deps.disk)
  const ended = async (stopped_by: string | null, exit_code: number): Promise<void> => {
    const actual = tally.actual((deps.now() - started) / 1000)
    await noteRunFacts(ledger, { id: run, ended_at: deps.nowMicros(), stopped_by, exit_code, actual }, deps.disk)
  }
  try {
    await withTools(bench, async (tools) => await work(tools, plan))
  } catch (error) {
    // The same disk may be what failed: then the first error is the one to tell.
    await ended('error', exitCode(error)).catch(() => undefined)
    throw error
  }
  const summary = tally.summary(run)
  const error = verdict(summary)
  await ended(summary.stopped_by, error === null ? 0 : exitCode(error))
}
