import { ruleFor } from '../catalog/availability.ts'
import { usage } from '../errors.ts'
import { kinds } from '../kinds.ts'
import type { Plan, Totals } from '../metrics/plan.ts'
import { preparePlan } from '../metrics/prepare.ts'
import { formatDate, formatInstant, type Instant } from '../time.ts'
import { type DueBy, type NextPoint, nextPoints, registryDue } from '../watch/due.ts'
import { lagsNow, lakeNow } from '../watch/lake.ts'
import { bytes, span, whole } from '../words/figures.ts'
import { labelled, type LabelledRow, table, wrapped } from '../words/table.ts'
import { boundingOptions, selectionOptions, selectionsOf } from './context.ts'
import { type CommandAnswer, answering, type CommandContext, type Deps, type Input } from './spec.ts'
import { besideWorld, lakeWorld } from './world.ts'

const planOptions = {
  ...selectionOptions,
  ...boundingOptions,
  '--requests': 'list every request',
  '--offline': "plan by the provider's metadata that the lake holds, and ask nobody",
} as const

/** `plan`: what a fetch would ask. */
export const planCommand = answering({
  name: 'plan',
  ends: [4, 6, 7],
  options: {
    ...planOptions,
    '--due': 'instead, what comes next of each series, and when; asks nobody',
    '--at TIME': { kind: kinds.instant, about: 'with --due: as seen at this instant instead of now' },
  },
  details:
    "Asks the provider for its metadata of the selected paths where the lake's are older than 7 days (free, and no part\nof the counts), as `fetch` does, and keeps them in a lake that it may write to. What they leave out is not asked.\n\n" +
    'Flags for paths, assets or dimensions make a selection of their own; without them `select` of the\nconfig holds, without that what the lake holds already. -v shows where each setting comes from.\n\n' +
    '--due lists the next point of each series by the instant at which it should be there: by the lag that its endpoint\nhas shown (what `audit availability` measures, after ten arrivals), else by its availability rule. It asks nobody.',
  answer: async (input, context, deps) => {
    const { due, at = Math.floor(deps.now() / 1000), requests, offline, gaps, maxRequests } = input.options
    if (due) {
      // What speaks of requests has no say in what is due.
      const beside = Object.entries({ requests, offline, gaps, 'max-requests': maxRequests }).find(([, value]) => value)
      if (beside !== undefined)
        throw usage('--due', { expected: 'no flag that is about requests', got: `--${beside[0]}` })
      return await answerDue(input, context, at)
    }
    if (input.options.at !== undefined) throw usage('--at', { expected: '--due with it', got: 'no --due' })
    return await answerPlan(input, context, deps)
  },
})

/** What a fetch would ask, as `plan` says it. */
export async function answerPlan(
  input: Input<typeof planOptions>,
  { settings, catalogue }: CommandContext,
  deps: Deps,
): Promise<CommandAnswer<Totals>> {
  const { maxRequests: most, offline, gaps: gapsOnly, requests } = input.options
  const selections = await selectionsOf(input, { settings, catalogue })
  const now = Math.floor(deps.now() / 1000)
  const wanted = { settings, catalogue, selections, gapsOnly, now }
  const world = offline ? null : { ...besideWorld(deps), ...lakeWorld(deps, 'plan') }
  const { plan, metadata } = await preparePlan(wanted, world)
  if (input.options.verbose) {
    deps.stderr(
      table(
        ['setting', 'value', 'from'],
        settings.effective.map((s) => [s.name, s.value, s.origin]),
      ),
    )
  }
  if (offline) deps.stderr('note: --offline: planned by the metadata that the lake holds; nobody was asked\n')
  const document = {
    ...plan.totals,
    not_asked: plan.blocked.length,
    metadata: { ...metadata, offline },
    ...(requests && { asks: listed(plan) }),
  }
  const { paths, asked } = metadata
  const words = (): string => {
    for (const note of notesOn(plan, most)) deps.stderr(`note: ${note}\n`)
    const list = requests ? `${requestTable(plan)}\n` : ''
    return `${list}${inWords(plan, `of ${paths} paths, ${asked} asked for now`)}`
  }
  return { document, words }
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
  const rows: readonly LabelledRow[] = [
    ...(['series', 'windows', 'requests', 'credits'] as const).map((name) => [name, whole(totals[name])] as const),
    ['points', `about ${whole(totals.points)}`],
    ['bytes', `about ${bytes(totals.bytes)}`],
    ['duration', `about ${span(totals.seconds)}`],
    blocked.length > 0 && ['not asked', `${whole(blocked.length)} windows`],
    ['metadata', metadata],
  ]
  return labelled(rows, 11)
}

function notesOn({ totals, blocked, notes }: Plan, most: number | undefined): string[] {
  const cut = most !== undefined && most < totals.requests
  return [
    ...new Set(blocked.map(({ reason }) => reason)),
    ...(cut ? [`--max-requests ${most} stops after ${most} of ${totals.requests} requests`] : []),
    ...notes,
  ]
}

/** The requests as scripts read them. */
function listed(plan: Plan): readonly object[] {
  return plan.asks.map((ask) => ({
    series: ask.series.id,
    since: ask.window?.since ?? null,
    until: ask.window?.until ?? null,
    points: ask.points,
    credits: ask.credits,
  }))
}

/** `plan --due`: the next point of each series, by its rule or by the lag learnt so far; asks nobody. */
async function answerDue(input: Input<typeof selectionOptions>, { settings, catalogue }: CommandContext, at: Instant) {
  const selections = await selectionsOf(input, { settings, catalogue })
  const { wanted, held, registryPolled } = await lakeNow(settings.data, catalogue, selections, at)
  const learnt = await lagsNow(settings.data, catalogue, wanted)
  const points = nextPoints(wanted, { held, learnt, weekStart: settings.metrics.weekStart, at })
  const registry = registryPolled === null ? null : registryDue(registryPolled, at)
  // What comes next, and when: names are relied on by scripts.
  const document = {
    at: formatInstant(at),
    series: wanted.length,
    overdue: points.filter(({ due }) => due < at).length,
    due: points.map((point) => rowOf(point, at)),
    /** When the registry is to be polled next; null where the lake has none of it. */
    registry: registry === null ? null : formatInstant(registry),
  }
  return { document, words: () => dueInWords(points, registry, at) }
}

/** One series of the list: instants as ISO text, the basis of the rule in force, and when `watch` asks for it. */
function rowOf({ series, endpoint, interval, t, due, by, observations, poll }: NextPoint, at: Instant) {
  const { metric, asset, currency, exchange, network } = series
  const { basis } = ruleFor(endpoint.rules[interval], t ?? Infinity)
  const instants = { due: formatInstant(due), t: t === null ? null : formatInstant(t), poll: formatInstant(poll) }
  const overdue = due < at
  return { ...instants, overdue, metric, asset, interval, currency, exchange, network, by, basis, observations }
}

const reasons: Readonly<Record<DueBy, string>> = {
  rule: 'by the rule',
  told: 'by the lag that the provider tells',
  learnt: 'by the lag learnt',
  new: 'never asked',
  quiet: 'nothing comes, asked daily',
  refused: 'refused, asked again',
}

/** A line for each instant with what is due then, and below it the metrics with their assets. */
function dueInWords(points: readonly NextPoint[], registry: Instant | null, at: Instant): string {
  const headed = Map.groupBy(points, ({ due, interval, t, by }) => {
    const of = t === null ? interval : `${interval} of ${short(t)}`
    return `${short(due)}  ${away(due - at).padEnd(12)} ${of}, ${reasons[by]}`
  })
  const blocks = [...headed].map(([head, own]) => {
    const metrics = Map.groupBy(own, ({ series }) => series.metric)
    const lines = [...metrics].flatMap(([metric, all]) => {
      const assets = [...new Set(all.map(({ series }) => series.asset))].join(', ')
      const line = `  ${metric}  ${assets}`
      return line.length <= 80 ? [line] : [`  ${metric}`, ...wrapped(`      ${assets}`, 6)]
    })
    return `${[head, ...lines].join('\n')}\n`
  })
  const polled = registry === null ? [] : [`${short(registry)}  ${away(registry - at).padEnd(12)} registry\n`]
  return [...blocks, ...polled].join('')
}

const short = (instant: Instant): string => `${formatInstant(instant).slice(0, 16).replace('T', ' ')}Z`

function away(after: number): string {
  return after < 0 ? `${span(-after)} ago` : after === 0 ? 'now' : `in ${span(after)}`
}
