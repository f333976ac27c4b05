import { withFeatures } from './follow.ts'
import { fetchSeries } from '../../sources/metrics/fetch.ts'
import { beginsInWords, type IngestSummary, verdict } from '../../sources/metrics/run-summary.ts'
import { boundingOptions, instantNow, isVerbose, selectionOptions, selectionsOf } from '../cli/context.ts'
import type { FeatureTold } from '../../trust/features/features.ts'
import type { IngestEvent } from '../../sources/metrics/run.ts'
import { answering, type CommandAnswer } from '../cli/spec.ts'
import { askingWorld, spareHeap } from '../cli/world.ts'
import { stopwatch, type Spent } from '../../base/stopwatch.ts'
import { formatCount, formatLabelled, bytes, span, several } from '../../base/figures.ts'
import { passingLine, type ProgressReporter } from '../../base/progress.ts'
import { describeSkew } from '../../sources/http/skew.ts'

/** Document of `fetch`. Scripts rely on the names. */
export interface FetchDocument extends IngestSummary {
  /** Seconds that each part of the run took. */
  readonly seconds: Readonly<Record<string, number>>
  /** Results of features that were computed afterwards; missing if none was due. */
  readonly features?: readonly FeatureTold[]
}

export const fetchCommand = answering({
  viewsAfter: true,
  recorded: true,
  asks: true,
  options: {
    ...selectionOptions,
    ...boundingOptions,
    '--max-credits N': 'stop before the requests cost more credits',
    '--provider-moved': 'the provider has a new address: accept it for this lake',
  },
  details: `The first Ctrl-C finishes the requests in flight and commits them. The second one stops at once. In both cases the same command
continues later.

Stored points never change. If the provider sends a different value, fetch records a violation and exits with 4. At its end fetch
computes the due values of declared features.

Example: pitlake fetch --assets BTC,ETH --paths 'supply/*' --since 2024-01-01

Example: pitlake fetch --max-credits 300`,
  answer: async (call): Promise<CommandAnswer<FetchDocument>> => {
    const { settings, catalogue, options } = call
    const { gaps: gapsOnly, maxRequests = null, maxCredits: budget = null, providerMoved } = options
    spareHeap()
    const verbose = isVerbose(call)
    const progress = fetchProgress(call, verbose)
    const { during, spent } = stopwatch(call.elapsed)
    const selections = await selectionsOf(call)
    const now = instantNow(call)
    const summary = await fetchSeries(
      { settings, catalogue, selections, gapsOnly, now, maxRequests, budget, providerMoved },
      { ...askingWorld(call, 'fetch'), onEvent: progress.onEvent, detailedLog: verbose, during },
    ).finally(progress.end)
    const seconds = spent()
    if (verbose) call.stderr(inSeconds(seconds))
    return await withFeatures(call, (version) => {
      const done = { ...summary, version }
      return { document: { ...done, seconds }, words: () => inWords(done), error: verdict(done) }
    })
  },
})

const mostShown = 3

/** Formats where the time went, to a tenth of a second, in the order in which a run begins with it. */
function inSeconds(seconds: Spent): string {
  const parts = Object.entries(seconds).map(([part, took]) => `${part} ${took.toFixed(1)}`)
  const whole = Object.values(seconds).reduce((sum, took) => sum + took, 0)
  return `took ${whole.toFixed(1)} s: ${parts.toReversed().join(', ')}\n`
}

function inWords(summary: IngestSummary): string {
  const { windows, incidents, gaps, acknowledged, violations, points_added: points, begins_later: later } = summary
  const revised = summary.vintages_added === 0 ? '' : `, ${formatCount(summary.vintages_added)} revised`
  const unasked = windows.not_requested === 0 ? '' : `, ${windows.not_requested} not requested`
  const states = (['covered', 'empty', 'unsupported', 'failed'] as const).map((state) => `${windows[state]} ${state}`)
  const mistyped = summary.mistyped_assets.map(({ asset, near }) => `${asset}; the provider lists ${near}`)
  const among = incidents === 0 ? '' : `, ${incidents === 1 ? 'an incident' : `${incidents} incidents`} among them`
  return formatLabelled([
    ['version', String(summary.version)],
    ['requests', formatCount(summary.requests)],
    ['points', `${formatCount(points)} added${revised} in ${several(summary.files_added, 'file')}`],
    ['windows', `${states.join(', ')}${unasked}`],
    mistyped.length > 0 && ['not listed', mistyped.join(', ')],
    gaps !== 0 && ['gaps', `${several(gaps, 'window')} in which points are missing: pitlake sql "FROM gaps"`],
    // Series whose history begins later than requested.
    ...later.slice(0, mostShown).map((series) => ['begins later', beginsInWords(series)] as const),
    later.length > mostShown && ['begins later', `${formatCount(later.length - mostShown)} more series: see --json`],
    ['violations', `${violations}${among}${acknowledged === 0 ? '' : `, and ${acknowledged} acknowledged`}`],
  ])
}

const minuteMs = 60_000
/** Milliseconds of resolved windows from which the time left is estimated. */
const paceMs = 2 * minuteMs
/** Minimum resolved windows from which a pace is estimated. */
const fewSettled = 8

/** Shows a fetch on stderr. */
export function fetchProgress(deps: ProgressReporter, verbose: boolean) {
  const count = counting(deps.now)
  const { say, show, end } = passingLine(deps)
  const onEvent = (event: IngestEvent): void => {
    count.add(event)
    if (event.kind === 'planned') for (const line of planned(event)) say(line)
    if (event.kind === 'beyond') {
      const of = `${formatCount(event.points)} new points of ${event.series.replaceAll('|', ' ').trim()}`
      say(`note: ${of} are integers that a double does not hold; their text is in extra`)
    }
    if (event.kind === 'skew') say(`note: ${describeSkew(event.skew)}: windows are resolved only up to the earlier one`)
    if (verbose) for (const line of detail(event)) say(line)
    const newsLine = news(event)
    if (newsLine !== null)
      show(() => count.line(newsLine), event.kind === 'committed' || newsLine.startsWith('waiting'))
  }
  return { onEvent, end }
}

/** Counts what is done and what is left. */
function counting(now: () => number) {
  const windowsLeft = new Map<string, number>()
  const [sentAt, settledAt]: [number[], number[]] = [[], []]
  let series = 0
  let asks = 0
  let points = 0
  let requests = 0
  let credits = 0
  let beganAt = 0
  const add = (event: IngestEvent): void => {
    if (event.kind === 'planned') {
      for (const ask of event.plan.asks) windowsLeft.set(ask.series.id, (windowsLeft.get(ask.series.id) ?? 0) + 1)
      ;[series, asks, beganAt] = [windowsLeft.size, event.plan.asks.length, now()]
    } else if (event.kind === 'settled') {
      settledAt.push(now())
      const { id } = event.ask.series
      const more = (windowsLeft.get(id) ?? 1) - 1
      if (more > 0) windowsLeft.set(id, more)
      else windowsLeft.delete(id)
    } else if (event.kind === 'committed') points += event.points
    else if (event.kind === 'answered') credits += event.ask.credits
    else if (event.kind === 'asking' && event.event.kind === 'sent') {
      requests = event.event.sent
      sentAt.push(now())
    }
  }
  /** Requests a minute over the last minute, or since the beginning while that is shorter. */
  const rate = (): number => {
    const within = Math.min(minuteMs, Math.max(1_000, now() - beganAt))
    return (countSince(sentAt, now() - minuteMs + 1) * minuteMs) / within
  }
  const ahead = (): string[] => {
    if (settledAt.length === 0 || settledAt.length >= asks) return []
    // Recently resolved windows show the current pace, which may have changed since the beginning.
    const few = settledAt.at(-fewSettled) ?? beganAt
    const from = Math.max(beganAt, Math.min(now() - paceMs, few))
    const each = (now() - from) / 1000 / Math.max(1, countSince(settledAt, from))
    return [`about ${span(each * (asks - settledAt.length))} left`]
  }
  const line = (what: string): string => {
    const done = `${formatCount(series - windowsLeft.size)}/${formatCount(series)} series`
    const pace = `${several(requests, 'request')}, ${Math.round(rate())}/min`
    return [done, several(points, 'point'), pace, several(credits, 'credit'), ...ahead(), what].join('  ')
  }
  return { add, line }
}

/** Counts the ascending instants that are not before another. */
const countSince = (ascending: readonly number[], from: number): number =>
  ascending.length - 1 - ascending.findLastIndex((at) => at < from)

/** Formats the words at the end of the line; null for an event that changes nothing there. */
function news(event: IngestEvent): string | null {
  if (event.kind === 'answered') return event.ask.series.metric
  if (event.kind === 'committed') return `version ${event.version} committed`
  if (event.kind === 'asking' && event.event.kind === 'waiting') {
    const { waitMs, why } = event.event
    return `waiting ${span(waitMs / 1000)} (${why === 'slot' ? 'rate limit' : 'before trying again'})`
  }
  return null
}

function planned({ plan: { totals, notes, blocked } }: Extract<IngestEvent, { kind: 'planned' }>): string[] {
  const size = `about ${several(totals.points, 'point')} (${bytes(totals.bytes)})`
  const line =
    `plan: ${several(totals.requests, 'request')}, ${several(totals.credits, 'credit')}, ${size}, about ` +
    span(totals.seconds)
  const reasons = [...new Set(blocked.map(({ reason }) => reason))]
  const more = reasons.length > 3 ? [`and ${reasons.length - 3} more`] : []
  const why = [...reasons.slice(0, 3), ...more].join('; ')
  const outcome =
    blocked.length === 0 ? [] : [`note: ${several(blocked.length, 'window is', 'windows are')} not requested: ${why}`]
  return [line, ...notes.map((note) => `note: ${note}`), ...outcome]
}

function detail(event: IngestEvent): string[] {
  if (event.kind === 'asking' && event.event.kind === 'answered') {
    const { id, attempt, outcome, perMinute } = event.event
    const status = 'status' in outcome && outcome.status !== null ? ` ${outcome.status}` : ''
    return [`${id} try ${attempt}: ${outcome.kind}${status}, pace ${Math.round(perMinute)} a minute`]
  }
  if (event.kind === 'request') return [`${event.id} asks ${event.ask.series.id}`]
  if (event.kind === 'listing') return [`assets: ${event.assets ?? event.outcome}, ${event.fresh} new`]
  if (event.kind === 'metadata') return [`metadata: ${event.read} of ${event.asked} paths`]
  return []
}
