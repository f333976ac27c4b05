import { preparePlan } from '../metrics/prepare.ts'
import type { Plan } from '../metrics/plan.ts'
import { formatDate } from '../time.ts'
import { countOption, readContext, selectionOptions, selectionsOf } from './context.ts'
import { bytes } from '../report/page/words.ts'
import { json, seconds, table } from './print.ts'
import { type CommandSpec, type Deps, flagOption } from './spec.ts'
import { besideWorld, lakeWorld } from './world.ts'

/** `plan`: what a fetch would ask. */
export const planCommand: CommandSpec = {
  name: 'plan',
  summary: 'What a fetch would ask: series, windows, requests, credits, points, bytes, duration at the known rate.',
  options: [
    ...selectionOptions,
    { flags: '--requests', about: 'list every request' },
    { flags: '--offline', about: "plan by the provider's metadata that the lake holds, and ask nobody" },
    { flags: '--json', about: 'one JSON document on stdout' },
  ],
  details:
    "Asks the provider for its metadata of the selected paths where the lake's are older than 7 days (free, and no part\nof the counts), as `fetch` does, and keeps them where a lake is. What they leave out is not asked.\n\n" +
    'Flags for paths, assets or dimensions make a selection of their own; without them `select` of the\nconfig holds, without that what the lake holds already. -v shows where each setting comes from.',
  run: async (input, deps) => {
    const { settings, catalogue } = readContext(input, deps)
    const most = countOption(input, 'maxRequests', '--max-requests')
    const selections = await selectionsOf(input, { settings, catalogue })
    const now = Math.floor(deps.now() / 1000)
    const offline = flagOption(input, 'offline')
    const wanted = { settings, catalogue, selections, gapsOnly: flagOption(input, 'gaps'), now }
    const world = offline ? null : { ...besideWorld(deps), ...lakeWorld(deps, 'plan') }
    const { plan: whole, metadata } = await preparePlan(wanted, world)
    if (flagOption(input, 'verbose')) {
      deps.stderr(
        table(
          ['setting', 'value', 'from'],
          settings.effective.map((s) => [s.name, s.value, s.origin]),
        ),
      )
    }
    if (offline) deps.stderr('note: --offline: planned by the metadata that the lake holds; nobody was asked\n')
    if (flagOption(input, 'json'))
      return deps.stdout(
        json({
          ...whole.totals,
          not_asked: whole.blocked.length,
          metadata: { ...metadata, offline },
          ...(flagOption(input, 'requests') && { asks: listed(whole) }),
        }),
      )
    print(whole, deps, flagOption(input, 'requests'), most)
    const { paths, asked } = metadata
    deps.stdout(`${'metadata'.padEnd(10)} of ${paths} paths, ${asked} asked for now\n`)
  },
}

function print(plan: Plan, deps: Deps, requests: boolean, most: number | undefined): void {
  const { totals } = plan
  if (requests) {
    const rows = plan.asks.map((ask) => {
      const { series, window } = ask
      const extra = [series.currency, series.exchange, series.network].filter((part) => part !== null).join(' ')
      const range = window === null ? 'whole series' : `${formatDate(window.since)} .. ${formatDate(window.until)}`
      return [series.metric, series.asset, series.interval ?? '', extra, range, ask.points, ask.credits]
    })
    deps.stdout(table(['endpoint', 'asset', 'interval', 'dimensions', 'range', 'points', 'credits'], rows))
    deps.stdout('\n')
  }
  const lines = [
    ['series', totals.series.toLocaleString('en-US')],
    ['windows', totals.windows.toLocaleString('en-US')],
    ['requests', totals.requests.toLocaleString('en-US')],
    ['credits', totals.credits.toLocaleString('en-US')],
    ['points', `about ${totals.points.toLocaleString('en-US')}`],
    ['bytes', `about ${bytes(totals.bytes)}`],
    ['duration', `about ${seconds(totals.seconds)}`],
  ]
  for (const [name, value] of lines) deps.stdout(`${name?.padEnd(10)} ${value}\n`)
  if (plan.blocked.length > 0) {
    const reasons = [...new Set(plan.blocked.map((b) => b.reason))]
    deps.stdout(`${'not asked'.padEnd(10)} ${plan.blocked.length.toLocaleString('en-US')} windows\n`)
    for (const reason of reasons) deps.stderr(`note: ${reason}\n`)
  }
  if (most !== undefined && most < totals.requests)
    deps.stderr(`note: --max-requests ${most} stops after ${most} of ${totals.requests} requests\n`)
  for (const note of plan.notes) deps.stderr(`note: ${note}\n`)
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
