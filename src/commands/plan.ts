import { usage } from '../errors.ts'
import { preparePlan } from '../metrics/prepare.ts'
import type { Plan, Totals } from '../metrics/plan.ts'
import { formatDate } from '../time.ts'
import { kinds } from '../kinds.ts'
import { boundingOptions, readContext, selectionOptions, selectionsOf } from './context.ts'
import { answerDue } from './due.ts'
import { bytes, span, whole } from '../words/figures.ts'
import { table } from '../words/table.ts'
import { type Answer, answering, type Deps, type Input } from './spec.ts'
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
  answer: async (input, deps) => {
    const { due, at = Math.floor(deps.now() / 1000), requests, offline, gaps, maxRequests } = input.options
    if (due) {
      // What speaks of requests has no say in what is due.
      const beside = Object.entries({ requests, offline, gaps, 'max-requests': maxRequests }).find(([, value]) => value)
      if (beside !== undefined)
        throw usage('--due', { expected: 'no flag that is about requests', got: `--${beside[0]}` })
      return await answerDue(input, deps, at)
    }
    if (input.options.at !== undefined) throw usage('--at', { expected: '--due with it', got: 'no --due' })
    return await answerPlan(input, deps)
  },
})

/** What a fetch would ask, as `plan` says it. */
export async function answerPlan(input: Input<typeof planOptions>, deps: Deps): Promise<Answer<Totals>> {
  const { settings, catalogue } = await readContext(input, deps)
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
    return `${list}${inWords(plan)}${'metadata'.padEnd(10)} of ${paths} paths, ${asked} asked for now\n`
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

function inWords({ totals, blocked }: Plan): string {
  const lines = [
    ...(['series', 'windows', 'requests', 'credits'] as const).map((name) => [name, whole(totals[name])]),
    ['points', `about ${whole(totals.points)}`],
    ['bytes', `about ${bytes(totals.bytes)}`],
    ['duration', `about ${span(totals.seconds)}`],
    ...(blocked.length > 0 ? [['not asked', `${whole(blocked.length)} windows`]] : []),
  ]
  return lines.map(([name = '', value]) => `${name.padEnd(10)} ${value}\n`).join('')
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
