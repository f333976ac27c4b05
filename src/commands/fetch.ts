import { fetchSeries } from '../metrics/fetch.ts'
import { beginsInWords, type IngestSummary, verdict } from '../metrics/tally.ts'
import { boundingOptions, isVerbose, selectionOptions, selectionsOf } from './context.ts'
import { fetchProgress } from './progress.ts'
import { answering } from './spec.ts'
import { askingWorld, spareHeap } from './world.ts'
import { type Spent, stopwatch } from '../stopwatch.ts'
import { whole } from '../words/figures.ts'
import { labelled } from '../words/table.ts'

/** `fetch`: brings the selected metrics up to date. */
export const fetchCommand = answering({
  name: 'fetch',
  ends: [3, 4, 5, 6, 7],
  recorded: true,
  asks: true,
  options: {
    ...selectionOptions,
    ...boundingOptions,
    '--provider-moved': 'the provider has a new address: accept it for this lake',
  },
  details:
    'The first Ctrl-C finishes what is in flight and commits; the second stops at once. Either way the same\ncommand goes on later: stored points never change, an upstream difference is a violation (exit 4).',
  answer: async (input, { settings, catalogue }, deps) => {
    const { gaps: gapsOnly, maxRequests = null, providerMoved } = input.options
    spareHeap()
    const verbose = isVerbose(input, deps)
    const progress = fetchProgress(deps, verbose)
    const { during, spent } = stopwatch(deps.elapsed)
    const summary = await fetchSeries(
      {
        settings,
        catalogue,
        selections: await selectionsOf(input, { settings, catalogue }),
        gapsOnly,
        now: Math.floor(deps.now() / 1000),
        maxRequests,
        providerMoved,
      },
      { ...askingWorld(deps, 'fetch', catalogue), onEvent: progress.onEvent, detailedLog: verbose, during },
    ).finally(progress.end)
    const seconds = spent()
    if (verbose) deps.stderr(inSeconds(seconds))
    return { document: { ...summary, seconds }, words: () => inWords(summary), error: verdict(summary) }
  },
})

const shown = 3

/** Where history begins later than it was asked for. */
function begins({ begins_later: later }: IngestSummary): (readonly [string, string])[] {
  const lines = later.slice(0, shown).map((one) => ['begins later', beginsInWords(one)] as const)
  const more = later.length - shown
  return more <= 0 ? lines : [...lines, ['begins later', `${whole(more)} more series: see --json`]]
}

/** Where the time went, to a tenth of a second, in the order in which a run begins with it. */
function inSeconds(seconds: Spent): string {
  const parts = Object.entries(seconds).map(([part, took]) => `${part} ${took.toFixed(1)}`)
  const whole = Object.values(seconds).reduce((sum, took) => sum + took, 0)
  return `took ${whole.toFixed(1)} s: ${parts.toReversed().join(', ')}\n`
}

function inWords(summary: IngestSummary): string {
  const { windows, incidents, gaps, accepted, violations, points_added: points } = summary
  const unasked = windows.not_asked === 0 ? '' : `, ${windows.not_asked} not asked`
  const among = incidents === 0 ? '' : `, ${incidents === 1 ? 'an incident' : `${incidents} incidents`} among them`
  return labelled([
    ['version', String(summary.version)],
    ['requests', whole(summary.requests)],
    ['points', `${whole(points)} added in ${summary.files_added} files`],
    [
      'windows',
      `${windows.covered} covered, ${windows.empty} empty, ${windows.unsupported} unsupported, ${windows.failed} failed${unasked}`,
    ],
    gaps !== 0 && ['gaps', `${whole(gaps)} windows in which points are missing: pitlake sql "FROM gaps"`],
    ...begins(summary),
    ['violations', `${violations}${among}${accepted === 0 ? '' : `, and ${accepted} accepted`}`],
  ])
}
