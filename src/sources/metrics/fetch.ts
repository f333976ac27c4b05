import { checkSelections } from '../../catalog/series.ts'
import { isListingDue, mistypedAssets, wantsListing } from './assets.ts'
import { selectionMarks } from '../../lake/ledger/run-queries.ts'
import { metadataDue, standingMetadata } from './metadata.ts'
import { type Named, resolveNames, unnamedSelections } from './names.ts'
import { namesKey } from './recorded-names.ts'
import { commit } from '../../lake/ledger/commit.ts'
import { canonical, type Json } from '../../lake/ledger/entry.ts'
import { type PlanInput, planOn } from './prepare.ts'
import {
  withMetricsConnection,
  type IngestDeps,
  type MetricsInput,
  type MetricsRun,
  withMetrics,
  type Purpose,
} from './run.ts'
import { type IngestSummary, verdict } from './run-summary.ts'
import { selectedPlaceholders } from './unmapped.ts'

/** The input of a fetch. */
interface IngestInput extends PlanInput, MetricsInput {
  /** Maximum credits for windows; null or absent for the cost of the plan. */
  readonly budget?: number | null
}

/**
 * Fetches the missing points of the selected series. A fetch may end at any time, because resuming means planning
 * again.
 */
export async function fetchSeries(input: IngestInput, deps: IngestDeps): Promise<IngestSummary> {
  // Checked first, so that a mistake in the command leaves nothing in a folder that is not a lake.
  checkSelections(input.catalogue, unnamedSelections(input.catalogue, input.selections))
  const { budget = null, eager: polls = false } = input
  const purpose: Purpose = { name: 'fetch', budget, polls, onBatch: () => undefined }
  return await withMetrics(input, deps, purpose, async (metricsRun) => {
    const { run, tally } = metricsRun
    const { ledger } = run
    // Contradictions of the configuration are refused before anything is requested.
    const knownCatalogue = resolveNames(input, ledger, { metadata: standingMetadata(ledger), listing: null }).catalogue
    const open = unnamedSelections(knownCatalogue, input.selections)
    const listing = wantsListing(open) && isListingDue(ledger, deps.nowMicros())
    const due = metadataDue({ ...input, catalogue: knownCatalogue, selections: open }, ledger, deps.nowMicros())
    let paths: readonly string[] | null = null
    if (listing || due.plain.length + due.guarded.length > 0)
      await withMetricsConnection(metricsRun, async ({ list, describe }) => {
        if (listing) await list()
        paths = await describe(due)
      })
    const named = resolveNames(input, ledger, { metadata: standingMetadata(ledger), listing: paths })
    const resolvedInput = { ...input, catalogue: named.catalogue }
    checkSelections(resolvedInput.catalogue, resolvedInput.selections)
    await recordNames(metricsRun, named)
    const planned = await planOn(resolvedInput, ledger)
    const plan = { ...planned, notes: [...planned.notes, ...named.notes] }
    await selectedPlaceholders(resolvedInput, ledger)
    if (plan.asks.length === 0 && plan.blocked.length === 0) deps.onEvent({ kind: 'planned', plan })
    else {
      // The code that converts answers is a quarter of the program, and loaded only if there is something to request.
      const { execute } = await import('./execute.ts')
      await execute({ ...metricsRun, input: resolvedInput }, plan, selectionMarks(input.selections))
      // Without metadata there was no answer yet.
      await recordNames(metricsRun, named)
    }
    tally.unmapped(await selectedPlaceholders(resolvedInput, ledger))
    const plannedAssets = new Set([...plan.asks, ...plan.blocked].map(({ series }) => series.asset))
    tally.mistyped(await mistypedAssets(ledger, [...plannedAssets]))
    const value = tally.summary(run.id)
    return { value, stopped_by: value.stopped_by, error: verdict(value) }
  })
}

/** Records the provider's names once the provider is known; unchanged names make no version. */
async function recordNames(
  { run: { ledger, id }, deps, input, tally }: Pick<MetricsRun, 'run' | 'deps' | 'input' | 'tally'>,
  { names, isNew }: Named,
): Promise<void> {
  const { provider } = ledger.head()
  if (!isNew || provider?.metrics === undefined) return
  const { providerMoved } = input
  const state = { [namesKey]: JSON.parse(canonical(names)) as Json }
  tally.version(await commit(ledger, { job: 'fetch', run: id, provider, providerMoved, state }, deps))
}
