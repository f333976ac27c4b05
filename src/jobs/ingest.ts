import { exitCode, type LakeError, usage } from '../errors.ts'
import { noteRunFacts } from '../lake/commit.ts'
import { Ledger } from '../lake/ledger.ts'
import { lockJob } from '../lake/lock.ts'
import { sweep } from '../lake/sweep.ts'
import type { Plan } from '../plan.ts'
import { isListingDue, wantsListing } from './assets.ts'
import { planOn } from './prepare.ts'
import { type IngestSummary, Tally } from './tally.ts'
import { type Bench, type IngestDeps, type IngestInput, list, withTools } from './tools.ts'
import { verdict } from './verdict.ts'
import { work } from './work.ts'

/** Brings the selected series up to date. Resuming is planning again, so it may end at any instant. */
export async function ingest(input: IngestInput, deps: IngestDeps): Promise<IngestSummary> {
  const { url, key } = input.settings.metrics
  if (url === null) throw unset('PITLAKE_METRICS_URL', 'the base address of the metrics API')
  if (key === null) throw unset('PITLAKE_METRICS_KEY', 'the key of the metrics API')
  const lock = await lockJob(input.settings.data, 'metrics', { ...deps.holder, since: deps.nowMicros() })
  try {
    const ledger = await Ledger.open(input.settings.data)
    try {
      await sweep(ledger, deps)
      const run = `${new Date(deps.now()).toISOString().replaceAll(/[-:.]/g, '').toLowerCase()}-${deps.holder.pid}`
      return await bring({ input, deps, ledger, url, key, run, tally: new Tally(ledger.head().version) })
    } finally {
      ledger.close()
    }
  } finally {
    await lock.release()
  }
}

function unset(name: string, what: string): LakeError {
  return usage(name, {
    expected: what,
    got: 'nothing',
    next: `set ${name}, or start \`pitlake sandbox\` and use what it prints`,
  })
}

async function bring(bench: Bench): Promise<IngestSummary> {
  const { input, deps, ledger, run, tally } = bench
  if (wantsListing(input.selections) && isListingDue(ledger, deps.nowMicros()))
    await withTools(bench, async (tools) => void (await list(tools)))
  const plan = await planOn(input, ledger)
  if (plan.asks.length === 0 && plan.blocked.length === 0) deps.onEvent({ kind: 'planned', plan })
  else await recorded(bench, plan)
  await deps.afterCommits?.({ ledger, run, commits: tally.commits })
  return tally.summary(run)
}

/** Does the work of the plan and writes the run down: its plan before, what came of it afterwards. */
async function recorded(bench: Bench, plan: Plan): Promise<void> {
  const { deps, ledger, run, tally } = bench
  const { command } = deps.holder
  const started = deps.now()
  const began = { id: run, job: 'fetch', command, started_at: deps.nowMicros(), plan: { ...plan.totals } }
  await noteRunFacts(ledger, began, deps.disk)
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
