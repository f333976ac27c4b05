import { fetchSeries } from '../metrics/fetch.ts'
import { beginsInWords, type IngestSummary, verdict } from '../metrics/tally.ts'
import { boundingOptions, instantNow, isVerbose, selectionOptions, selectionsOf } from './context.ts'
import type { IngestEvent } from '../metrics/run.ts'
import { prepareFinish } from '../upkeep/finish.ts'
import { fetchProgress } from './progress.ts'
import { answering } from './spec.ts'
import { askingWorld } from './world.ts'
import { type Spent, stopwatch } from '../stopwatch.ts'
import { whole } from '../words/figures.ts'
import { labelled } from '../words/table.ts'

/** `fetch`: brings the selected metrics up to date. */
export const fetchCommand = answering({
  recorded: true,
  asks: true,
  options: {
    ...selectionOptions,
    ...boundingOptions,
    '--provider-moved': 'the provider has a new address: accept it for this lake',
  },
  details:
    'The first Ctrl-C finishes what is in flight and commits; the second stops at once. Either way the same\ncommand goes on later: stored points never change, an upstream difference is a violation (exit 4).',
  answer: async (call) => {
    const { settings, catalogue, options } = call
    const { gaps: gapsOnly, maxRequests = null, providerMoved } = options
    const verbose = isVerbose(call)
    const progress = fetchProgress(call, verbose)
    const { during, spent } = stopwatch(call.elapsed)
    const onEvent = (event: IngestEvent): void => {
      if (event.kind === 'answered' && event.outcome.kind === 'body') prepareFinish()
      progress.onEvent(event)
    }
    const [selections, now] = [await selectionsOf(call), instantNow(call)]
    const summary = await fetchSeries(
      { settings, catalogue, selections, gapsOnly, now, maxRequests, providerMoved },
      { ...askingWorld(call, 'fetch'), onEvent, detailedLog: verbose, during },
    ).finally(progress.end)
    const seconds = spent()
    const words = () => inWords(summary, verbose ? seconds : undefined)
    return { document: { ...summary, seconds }, words, error: verdict(summary) }
  },
})

const shown = 3

/** Where the time went, to a tenth of a second, in the order in which a run begins with it. */
function inSeconds(seconds: Spent): string {
  const parts = Object.entries(seconds).map(([part, took]) => `${part} ${took.toFixed(1)}`)
  const whole = Object.values(seconds).reduce((sum, took) => sum + took, 0)
  return `${whole.toFixed(1)}: ${parts.toReversed().join(', ')}`
}

function inWords(summary: IngestSummary, seconds?: Spent): string {
  const { windows, incidents, gaps, accepted, violations, points_added: points, begins_later: later } = summary
  const unasked = windows.not_asked === 0 ? '' : `, ${windows.not_asked} not asked`
  const states = (['covered', 'empty', 'unsupported', 'failed'] as const).map((state) => `${windows[state]} ${state}`)
  const among = incidents === 0 ? '' : `, ${incidents === 1 ? 'an incident' : `${incidents} incidents`} among them`
  return labelled([
    ['version', String(summary.version)],
    ['requests', whole(summary.requests)],
    ['points', `${whole(points)} added in ${summary.files_added} files`],
    ['windows', `${states.join(', ')}${unasked}`],
    gaps !== 0 && ['gaps', `${whole(gaps)} windows in which points are missing: pitlake sql "FROM gaps"`],
    // Where history begins later than it was asked for.
    ...later.slice(0, shown).map((one) => ['begins later', beginsInWords(one)] as const),
    later.length > shown && ['begins later', `${whole(later.length - shown)} more series: see --json`],
    ['violations', `${violations}${among}${accepted === 0 ? '' : `, and ${accepted} accepted`}`],
    seconds !== undefined && ['seconds', inSeconds(seconds)],
  ])
}
