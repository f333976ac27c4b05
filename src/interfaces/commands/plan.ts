import { ruleFor } from '../../catalog/availability.ts'
import { usage } from '../../base/errors.ts'
import type { Plan, PlanTotals } from '../../sources/metrics/plan.ts'
import { preparePlan } from '../../sources/metrics/prepare.ts'
import { selectedPlaceholdersNow, type UnmappedName, unmappedError } from '../../sources/metrics/unmapped.ts'
import { formatDate, formatInstant, type Instant } from '../../base/time.ts'
import { type ExpectedBy, type NextPoint, nextPoints, nextRegistryPoll } from '../../maintenance/watch/next-points.ts'
import { lagsNow, lakeNow } from '../../maintenance/watch/jobs.ts'
import {
  bytes,
  formatLabelled,
  type LabelledRow,
  span,
  table,
  formatCount,
  wrapLine,
  several,
} from '../../base/figures.ts'
import { boundingOptions, instantNow, selectionOptions, selectionsOf } from '../cli/context.ts'
import { answering, type Call, type CommandAnswer } from '../cli/spec.ts'
import { besideWorld, lakeWorld } from '../cli/world.ts'

const planOptions = {
  ...selectionOptions,
  ...boundingOptions,
  '--requests': 'list every request',
  '--offline': "use only the provider's metadata in the lake; request nothing",
} as const

export const planCommand = answering({
  options: {
    ...planOptions,
    '--due': 'list the next point of each series and its expected time instead; request nothing',
    '--at TIME': 'with --due: the time to use instead of now',
  },
  details: `A plan is what fetch does with the same options. If the provider's metadata in the lake are older than 7 days, plan requests
them again and stores them. These requests are free and not part of the counts.

With options for paths, assets or dimensions you select series. Without them plan uses \`select\` of the configuration. Without that it
uses the series that the lake has. -v shows where each setting comes from.

--due lists the next point of each series and when it is expected. That time comes from the observed lag of the endpoint, if ten
arrivals are known, or from its availability rule. --due contacts no provider.

Exit 6: a selected series is never requested, because pitlake.yaml does not map a placeholder in its name.

Example: pitlake plan --assets BTC,ETH --paths 'supply/*' --since 2024-01-01

Example: pitlake plan --due`,
  answer: async (call) => {
    const { due, at, requests, offline, gaps, maxRequests } = call.options
    if (!due) {
      if (at !== undefined) throw usage('--at', { expected: '--due with it', got: 'no --due' })
      return await answerPlan(call)
    }
    // Options about requests do not change what is due.
    const beside = Object.entries({ requests, offline, gaps, 'max-requests': maxRequests }).find(([, value]) => value)
    if (beside !== undefined)
      throw usage('--due', { expected: 'no flag that is about requests', got: `--${beside[0]}` })
    return await answerDue(call, at ?? instantNow(call))
  },
})

/** One planned request. */
interface PlannedRequest {
  /** Id of the series. */
  readonly series: string
  /** Start of the requested range, Unix seconds; null if the whole series is requested. */
  readonly since: number | null
  /** End of the range, exclusive, Unix seconds; null if the whole series is requested. */
  readonly until: number | null
  /** Expected number of points. */
  readonly points: number
  /** Expected cost. */
  readonly credits: number
}

/** Number of paths whose provider metadata the plan knows. */
interface PlannedMetadata {
  /** Selected paths with metadata. */
  readonly paths: number
  /** Paths whose metadata this run requested. */
  readonly asked: number
  /** Whether `--offline` forbade requests. */
  readonly offline: boolean
}

/** Document of `plan`. Scripts rely on the names. */
export interface PlanDocument extends PlanTotals {
  /** Number of wanted windows that are not requested. */
  readonly not_requested: number
  /** Selected series that are never requested, by the placeholder that the configuration does not map. */
  readonly unmapped: readonly UnmappedName[]
  /** The provider's metadata that the plan uses. */
  readonly metadata: PlannedMetadata
  /** Requests in their order; only with `--requests`. */
  readonly asks?: readonly PlannedRequest[]
}

/** Answers what a fetch would request. */
export async function answerPlan(call: Call<typeof planOptions>): Promise<CommandAnswer<PlanDocument>> {
  const { settings, catalogue, options, stderr } = call
  const { maxRequests: most, offline, gaps: gapsOnly, requests, verbose } = options
  const selections = await selectionsOf(call)
  const planInput = { settings, catalogue, selections, gapsOnly, now: instantNow(call) }
  const world = offline ? null : { ...besideWorld(call), ...lakeWorld(call, 'plan') }
  const { plan, unmapped, metadata } = await preparePlan(planInput, world)
  const effective = settings.effective.map((setting) => [setting.name, setting.value, setting.origin])
  if (verbose) stderr(table(['setting', 'value', 'from'], effective))
  if (offline) stderr('note: --offline: planned with the metadata in the lake; no request was sent\n')
  const asks = plan.asks.map(({ series, window, points, credits }) => {
    return { series: series.id, since: window?.since ?? null, until: window?.until ?? null, points, credits }
  })
  const beside = { not_requested: plan.blocked.length, unmapped, metadata: { ...metadata, offline } }
  const document: PlanDocument = { ...plan.totals, ...beside, ...(requests && { asks }) }
  const { paths, asked } = metadata
  const words = (): string => {
    const { totals, blocked, notes } = plan
    const cut = most !== undefined && most < totals.requests
    const early = cut ? [`--max-requests ${most} stops after ${most} of ${several(totals.requests, 'request')}`] : []
    for (const note of [...new Set(blocked.map(({ reason }) => reason)), ...early, ...notes]) stderr(`note: ${note}\n`)
    const list = requests ? `${requestTable(plan)}\n` : ''
    return `${list}${inWords(plan, `of ${paths} paths, ${asked} requested now`)}`
  }
  return { document, words, error: unmappedError(unmapped) }
}

function requestTable({ asks }: Plan): string {
  const rows = asks.map(({ series, window, points, credits }) => {
    const extra = [series.currency, series.exchange, series.network].filter((part) => part !== null).join(' ')
    const range = window === null ? 'whole series' : `${formatDate(window.since)} .. ${formatDate(window.until)}`
    return [series.metric, series.asset, series.interval ?? '', extra, range, points, credits]
  })
  return table(['endpoint', 'asset', 'interval', 'dimensions', 'range', 'points', 'credits'], rows)
}

function inWords({ totals, blocked }: Plan, metadata: string): string {
  const { series, windows, requests, credits } = totals
  const rows: readonly LabelledRow[] = [
    ...Object.entries({ series, windows, requests, credits }).map(([label, n]) => [label, formatCount(n)] as const),
    ['points', `about ${formatCount(totals.points)}`],
    ['bytes', `about ${bytes(totals.bytes)}`],
    ['duration', `about ${span(totals.seconds)}`],
    blocked.length > 0 && ['not requested', several(blocked.length, 'window')],
    ['metadata', metadata],
  ]
  return formatLabelled(rows, 11)
}

/**
 * Answers `plan --due`: the next point of each series, by its rule or by the lag learnt so far; contacts no provider.
 */
async function answerDue(call: Call<typeof selectionOptions>, at: Instant) {
  const { settings, catalogue } = call
  const { data, metrics } = settings
  const selections = await selectionsOf(call)
  const { wanted, held, registryPolled } = await lakeNow(data, catalogue, selections, at)
  const unmapped = await selectedPlaceholdersNow({ settings, catalogue, selections })
  const learnt = await lagsNow(data, catalogue, wanted)
  const points = nextPoints(wanted, { held, learnt, weekStart: metrics.weekStart, at })
  const registry = registryPolled === null ? null : nextRegistryPoll(registryPolled, at)
  // Next points and their times: scripts depend on the names.
  const document = {
    at: formatInstant(at),
    series: wanted.length,
    overdue: points.filter(({ due }) => due < at).length,
    due: points.map((point) => rowOf(point, at)),
    registry: registry === null ? null : formatInstant(registry),
    unmapped,
  }
  return { document, words: () => dueInWords(points, registry, at), error: unmappedError(unmapped) }
}

/**
 * Formats one series of the list: instants as ISO text, the basis of the rule in force, and when `watch` requests it.
 */
function rowOf({ series, endpoint, interval, t, due, by, observations, poll }: NextPoint, at: Instant) {
  const { metric, asset, currency, exchange, network } = series
  const { basis } = ruleFor(endpoint.rules[interval], t ?? Infinity)
  const instants = { due: formatInstant(due), t: t === null ? null : formatInstant(t), poll: formatInstant(poll) }
  const overdue = due < at
  return { ...instants, overdue, metric, asset, interval, currency, exchange, network, by, basis, observations }
}

const reasons: Readonly<Record<ExpectedBy, string>> = {
  rule: 'by the rule',
  told: 'by the lag that the provider reports',
  learnt: 'by the lag learnt',
  new: 'never requested',
  quiet: 'no points arrive, requested daily',
  refused: 'refused, requested again',
}

/** Formats a line for each instant with what is due then, and below it the metrics with their assets. */
function dueInWords(points: readonly NextPoint[], registry: Instant | null, at: Instant): string {
  const headed = Map.groupBy(points, ({ due, interval, t, by }) => {
    return `${when(due, at)} ${t === null ? interval : `${interval} of ${short(t)}`}, ${reasons[by]}`
  })
  const lines = [...headed].flatMap(([head, linesOfHead]) => {
    const metrics = Map.groupBy(linesOfHead, ({ series }) => series.metric)
    const below = [...metrics].flatMap(([metric, all]) => {
      const assets = [...new Set(all.map(({ series }) => series.asset))].join(', ')
      const line = `  ${metric}  ${assets}`
      return line.length <= 80 ? [line] : [`  ${metric}`, ...wrapLine(`      ${assets}`, 6)]
    })
    return [head, ...below]
  })
  return [...lines, ...(registry === null ? [] : [`${when(registry, at)} registry`])]
    .map((line) => `${line}\n`)
    .join('')
}

const short = (instant: Instant): string => `${formatInstant(instant).slice(0, 16).replace('T', ' ')}Z`

function when(due: Instant, at: Instant): string {
  const after = due - at
  const away = after < 0 ? `${span(-after)} ago` : after === 0 ? 'now' : `in ${span(after)}`
  return `${short(due)}  ${away.padEnd(12)}`
}
