import { checkSelections } from '../catalog/series.ts'
import { isListingDue, wantsListing } from './assets.ts'
import { recorded, withBench } from './bench.ts'
import { planOn } from './prepare.ts'
import type { IngestSummary } from './tally.ts'
import { type Bench, type IngestDeps, type IngestInput, type Job, list, withTools } from './tools.ts'
import { verdict } from './verdict.ts'

const job: Job = { name: 'fetch', budget: null, onBatch: () => undefined }

/** Brings the selected series up to date. Resuming is planning again, so it may end at any instant. */
export async function ingest(input: IngestInput, deps: IngestDeps): Promise<IngestSummary> {
  // A slip of the call leaves nothing in a folder that is no lake.
  checkSelections(input.catalogue, input.selections)
  return await withBench(input, deps, job, async (bench) => await bring(bench, input))
}

async function bring(bench: Bench, input: IngestInput): Promise<IngestSummary> {
  const { deps, ledger, run, tally } = bench
  if (wantsListing(input.selections) && isListingDue(ledger, deps.nowMicros()))
    await withTools(bench, async (tools) => void (await list(tools)))
  const plan = await planOn(input, ledger)
  if (plan.asks.length === 0 && plan.blocked.length === 0) deps.onEvent({ kind: 'planned', plan })
  else await recorded(bench, plan, { verdict })
  await deps.afterCommits?.({ ledger, commits: tally.commits, requests: tally.requests })
  return tally.summary(run)
}
