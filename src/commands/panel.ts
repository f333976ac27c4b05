import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { usage } from '../errors.ts'
import { doubtsOfPanel } from '../query/doubts.ts'
import {
  bringDecisions,
  type Decisions,
  type PanelField,
  panelFields,
  type PanelSpec,
  panelSql,
} from '../query/panel.ts'
import { calendarOf } from '../query/panel-calendar.ts'
import { runScript } from '../query/run.ts'
import { isInterval, intervals } from '../time.ts'
import { timeOption } from './context.ts'
import { lakeFolder, queryOptions } from './query.ts'
import { writeAnswer } from './sql.ts'
import { type CommandSpec, type Deps, flagOption, type Input, listOption, textOption } from './spec.ts'

/** `panel`: decisions × metrics, one column each. */
export const panelCommand: CommandSpec = {
  name: 'panel',
  ends: [4, 5, 6],
  summary: 'Decisions × metrics, one column each: the latest value knowable at each decision.',
  options: [
    {
      flags: '--decisions FILE',
      about: 'CSV or Parquet with the columns asset and ts (only ts with --universe); all its columns are kept',
    },
    {
      flags: '--calendar SINCE,UNTIL,STEP',
      about: 'a grid instead: 2024-01-01,2025-01-01,1d (or 1month); needs --assets or --universe',
    },
    { flags: '--assets LIST', about: 'assets of the grid, by comma' },
    {
      flags: '--universe CONDITION',
      about: "instead of assets the products known at each ts: asset_class = 'treasury' AND status = 'active'",
    },
    { flags: '--metrics LIST', about: 'paths by comma; path#/pointer takes one leaf of an object' },
    { flags: '--interval NAME', about: 'interval of the metrics', default: '24h' },
    { flags: '--fields LIST', about: `what is told of each point: ${panelFields.join(', ')}`, default: 'v' },
    { flags: '--latency TIME', about: 'time needed to act: 15m' },
    { flags: '--max-age TIME', about: 'older points give NULL: 3d' },
    { flags: '--currency NAME', about: 'native or usd (default: the catalogue’s)' },
    { flags: '--exchange NAME', about: 'likewise' },
    { flags: '--network NAME', about: 'likewise' },
    { flags: '--component POINTER', about: 'JSON pointer into objects, for metrics without a #/pointer of their own' },
    { flags: '--skip-nulls', about: 'points whose value is null do not count' },
    { flags: '--explain', about: 'print the SQL instead of running it' },
    ...queryOptions,
  ],
  details: [
    'A zone-less ts is UTC. Each decision comes back once, in the order of the file.',
    '',
    "Example: pitlake panel --calendar 2024-01-01,2024-07-01,1d --assets BTC,ETH --metrics 'supply/current_pit' --out panel.parquet",
  ].join('\n'),
  run,
}

async function run(input: Input, deps: Deps): Promise<void> {
  const spec = specOf(input, deps)
  const sql = panelSql(spec)
  if (flagOption(input, 'explain')) return deps.stdout(`${sql.decisions};\n${sql.query};\n`)
  await writeAnswer(input, deps, lakeFolder(input, deps), sql.query, {
    prepare: async (engine, run) => runScript(engine, sql.query, { ...run, generated: true }),
    prelude: async (engine, run) => bringDecisions(engine, spec, run),
    by: 'asset',
    doubts: async (engine, written) => doubtsOfPanel(engine, spec, written),
  })
}

function specOf(input: Input, deps: Deps): PanelSpec {
  const interval = textOption(input, 'interval') ?? '24h'
  if (!isInterval(interval)) throw usage('--interval', { expected: intervals.join(', '), got: `"${interval}"` })
  return {
    decisions: decisionsOf(input, deps),
    universe: textOption(input, 'universe'),
    metrics: listOption(input, 'metrics') ?? [],
    interval,
    fields: fieldsOf(input),
    latencySeconds: timeOption(input, 'latency'),
    maxAgeSeconds: timeOption(input, 'maxAge'),
    currency: textOption(input, 'currency'),
    exchange: textOption(input, 'exchange'),
    network: textOption(input, 'network'),
    component: textOption(input, 'component'),
    skipNulls: flagOption(input, 'skipNulls'),
  }
}

function fieldsOf(input: Input): readonly PanelField[] {
  return (listOption(input, 'fields') ?? ['v']).map((text) => {
    const field = panelFields.find((one) => one === text)
    if (field === undefined) throw usage('--fields', { expected: panelFields.join(', '), got: `"${text}"` })
    return field
  })
}

function decisionsOf(input: Input, deps: Deps): Decisions {
  const file = textOption(input, 'decisions')
  const calendar = textOption(input, 'calendar')
  if ((file === undefined) === (calendar === undefined)) {
    const got = file === undefined ? 'neither' : 'both'
    throw usage('pitlake panel', { expected: '--decisions FILE or --calendar SINCE,UNTIL,STEP', got })
  }
  if (file !== undefined) {
    const path = resolve(deps.cwd, file)
    if (!existsSync(path)) throw usage('--decisions', { expected: 'a CSV or Parquet file', got: `no file ${path}` })
    return { kind: 'file', path }
  }
  const parts = (calendar ?? '').split(',').map((part) => part.trim())
  const grid = calendarOf('--calendar', parts.length === 3 ? parts : [calendar ?? ''])
  const assets = listOption(input, 'assets')
  const universe = textOption(input, 'universe')
  if ((assets === undefined) === (universe === undefined)) {
    const got = assets === undefined ? 'neither' : 'both'
    throw usage('--calendar', { expected: '--assets LIST or --universe CONDITION beside it', got })
  }
  return { ...grid, ...(assets && { assets }) }
}
