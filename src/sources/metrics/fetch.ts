import { checkSelections } from '../../catalog/series.ts'
import { isListingDue, wantsListing } from './assets.ts'
import { selectionMarks } from '../../lake/ledger/run-queries.ts'
import { metadataDue } from './metadata.ts'
import { type PlanInput, planOn } from './prepare.ts'
import { connected, type IngestDeps, type MetricsInput, withMetrics, type Purpose } from './run.ts'
import { type IngestSummary, verdict } from './run-summary.ts'
import { selectedPlaceholders } from './unmapped.ts'

/** The input of a fetch. */
interface IngestInput extends PlanInput, MetricsInput {
  /** The most credits that windows may cost; as many as the plan says where none is given. */
  readonly budget?: number | null
}

/** Brings the selected series up to date. Resuming is planning again, so it may end at any instant. */
export async function fetchSeries(input: IngestInput, deps: IngestDeps): Promise<IngestSummary> {
  // A slip of the call leaves nothing in a folder that is no lake.
  checkSelections(input.catalogue, input.selections)
  const { budget = null, eager: polls = false } = input
  const purpose: Purpose = { name: 'fetch', budget, polls, onBatch: () => undefined }
  return await withMetrics(input, deps, purpose, async (run) => {
    const listing = wantsListing(input.selections) && isListingDue(run.ledger, deps.nowMicros())
    const due = metadataDue(input, run.ledger, deps.nowMicros())
    if (listing || due.plain.length + due.guarded.length > 0)
      await connected(run, async ({ list, describe }) => {
        if (listing) await list()
        await describe(due)
      })
    const plan = await planOn(input, run.ledger)
    if (plan.asks.length === 0 && plan.blocked.length === 0) deps.onEvent({ kind: 'planned', plan })
    else {
      // What converts answers is a quarter of the program, and loaded only where there is something to ask.
      const { execute } = await import('./execute.ts')
      await execute(run, plan, selectionMarks(input.selections))
    }
    run.tally.unmapped(await selectedPlaceholders(input, run.ledger))
    const value = run.tally.summary(run.id)
    return { value, stopped_by: value.stopped_by, error: verdict(value) }
  })
}
