import type { CommandEntry, CommandSpec, ListedCommand } from '../cli/spec.ts'

/** `ends`: the exit codes that it may end with beside 0, 1 and 2, a digit each. */
type Row = readonly [name: string, summary: string, ends: string, module: () => Promise<object>]

/** Modules of several commands, and what makes a line long. */
const catalog = () => import('./catalog.ts')
const head = () => import('./head.ts')
const copies = () => import('./copies.ts')
const mcp = () => import('./mcp.ts')
const registry = () => import('./registry.ts')
const stamp = () => import('./stamp.ts')
const upkeep = () => import('./upkeep.ts')
const violations = () => import('./violations.ts')
const watch = () => import('./watch.ts')
const daily =
  'What cron calls, all that keeps a lake fresh: fetch, registry sync, views, features, merge when due, a sample of verify, the status page.'
const completion = async () => (await import('./completion.ts')).completions(commandTable)

const tasks: Readonly<Record<string, readonly Row[]>> = {
  'To begin': [
    ['init', 'Write a commented pitlake.yaml and .env.example.', '6', () => import('./init.ts')],
    ['sandbox', 'Serve both APIs locally with synthetic data: on 127.0.0.1.', '', () => import('./sandbox.ts')],
    ['completion', 'Have a shell complete command lines: bash, zsh or fish.', '', completion],
  ],
  'To bring data': [
    ['plan', 'What a fetch would ask, and what it would cost.', '467', () => import('./plan.ts')],
    ['fetch', 'Bring the metrics up to date; resumable at any instant.', '34567', () => import('./fetch.ts')],
    [
      'import',
      'Take data of your own into the lake: files as the series own/NAME.',
      '467',
      () => import('./import.ts'),
    ],
    ['features', 'Compute what is due of declared features: queries as series.', '4567', () => import('./features.ts')],
    ['registry snapshot', 'Take a dated snapshot of the whole registry.', '34567', registry],
    ['registry sync', 'Follow the change feed of the registry to its tail.', '34567', registry],
    ['daily', daily, '34567', () => import('./daily.ts')],
    ['watch', 'Keep the lake fresh: each series when it is due, the registry hourly.', '3467', watch],
  ],
  'To ask': [
    ['sql', 'Run SQL on the lake: one query, a script, or a session at a prompt.', '456', () => import('./sql.ts')],
    ['panel', 'Decisions × metrics: the latest value knowable at each decision.', '456', () => import('./sql.ts')],
    ['serve', 'Answer queries and panels over HTTP; read-only, until stopped.', '4', () => import('./serve.ts')],
    [
      'page',
      'Write the page of serve as files: charts, universe, coverage, for any static server.',
      '46',
      () => import('./page.ts'),
    ],
    ['mcp', 'Answer an agent: the Model Context Protocol over standard input and output.', '4', mcp],
    ['catalog list', 'List endpoints; by path, interval or dimension.', '', catalog],
    ['catalog show', 'Everything about one endpoint or resource.', '', catalog],
    ['catalog export', 'Every endpoint in full, as JSON; or for dbt.', '6', catalog],
    ['registry get', 'One record: the provider now beside the lake.', '3456', registry],
    ['registry list', 'A list: the provider now beside the lake.', '3456', registry],
  ],
  'To prove a result': [
    ['lookahead', 'Prove or disprove that a query looks ahead.', '456', () => import('./lookahead.ts')],
    ['stress', 'Run a query under longer lags and at earlier versions.', '4567', () => import('./stress.ts')],
    ['stamp', 'Run a query and pin all that its result was made from.', '4567', stamp],
    ['replay', 'Run a stamped result again and compare it bit for bit.', '45', stamp],
    ['certify', 'One file that proves a stamped result to a stranger.', '4', () => import('./certify.ts')],
    ['try', 'Name a query before its result is seen.', '47', head],
    ['explain-change', 'Which commit and which points changed a result.', '456', stamp],
  ],
  'To trust the lake': [
    ['status', 'Whether the lake can be trusted today.', '46', () => import('./status.ts')],
    ['registry status', 'Where the registry stands.', '4', registry],
    ['verify', 'Ask again for stored history and compare; prove every file.', '34567', () => import('./verify.ts')],
    ['head', 'A signed checkpoint over the whole history of the lake.', '4', head],
    ['key new', 'Make a key that signs heads; print its public half.', '4', head],
    ['violations list', 'What differs upstream, and what is refused.', '4', violations],
    ['violations accept', 'Take note of what differs, with the reason.', '467', violations],
    ['audit availability', 'Availability rules against observed arrivals.', '4', () => import('./audit.ts')],
    ['versions', 'What every version added, replaced and removed.', '4', upkeep],
    ['doctor', 'Find what is wrong with a lake and say the remedy.', '34567', () => import('./doctor.ts')],
  ],
  'To keep it in order': [
    ['views', 'Make lake.duckdb and lake.sql anew; also after a lake was moved.', '46', upkeep],
    ['compact', 'Merge small files; re-date points by changed rules.', '4567', upkeep],
    ['vacuum', 'Remove superseded files; a dry run without --yes.', '467', upkeep],
    ['catalog check', 'Validate the catalogue and the config.', '', catalog],
    ['catalog drift', 'Compare the catalogue with what the provider lists.', '3456', catalog],
    ['catalog import', "Add endpoints from a provider's own listing.", '6', catalog],
  ],
  'To share and keep copies': [
    ['publish', 'Write the lake as Delta tables, to a folder or a bucket.', '34567', copies],
    ['pull', 'Mirror a lake: only what is missing travels.', '34567', copies],
    ['backup', 'Keep the lake a second time, beside any job.', '34567', copies],
    ['restore', 'Make a lake from a backup: every file is checked.', '34567', copies],
  ],
}

/** Every command, in the order of `--help` and of the command reference. */
export const commandTable: readonly CommandEntry[] = Object.entries(tasks).flatMap(([task, rows]) =>
  rows.map(([name, summary, ends, module]) => {
    const own = `${name.replaceAll(/[ -](\w)/g, (_, first: string) => first.toUpperCase())}Command`
    const load = async (): Promise<ListedCommand> => {
      return { ...(Reflect.get(await module(), own) as CommandSpec), name, summary, ends: [...ends].map(Number) }
    }
    return { name, summary, task, load }
  }),
)
