import type { CommandSpec } from './spec.ts'

/** A command with what is said of it. */
type Command = CommandSpec & { readonly summary: string }

/** One line of `pitlake --help`; the command itself is loaded only when it runs. */
export interface CommandEntry {
  readonly name: string
  /** One sentence; where it is long the overview ends it before its first colon or semicolon. */
  readonly summary: string
  /** What it is for, in the overview. */
  readonly task: string
  readonly load: () => Promise<Command>
}

type Row = readonly [name: string, summary: string, module: () => Promise<object>]

/** The commands by the task that they are for. */
const tasks: Readonly<Record<string, readonly Row[]>> = {
  'To begin': [
    ['init', 'Write a commented pitlake.yaml and .env.example.', async () => import('./init.ts')],
    ['sandbox', 'Serve both APIs locally with synthetic data: on 127.0.0.1.', async () => import('./sandbox.ts')],
    [
      'completion',
      'Have a shell complete command lines: bash, zsh or fish.',
      async () => [(await import('./completion.ts')).completionOf(commandTable)],
    ],
  ],
  'To bring data': [
    ['plan', 'What a fetch would ask, and what it would cost.', async () => import('./plan.ts')],
    ['fetch', 'Bring the metrics up to date; resumable at any instant.', async () => import('./fetch.ts')],
    ['registry snapshot', 'Take a dated snapshot of the whole registry.', async () => import('./registry.ts')],
    ['registry sync', 'Follow the change feed of the registry to its tail.', async () => import('./registry.ts')],
    [
      'daily',
      'What cron calls, all that keeps a lake fresh: fetch, registry sync, views, merge when due, a sample of verify, the status page.',
      async () => import('./daily.ts'),
    ],
    [
      'watch',
      'Keep the lake fresh: each series when it is due, the registry hourly.',
      async () => import('./watch.ts'),
    ],
  ],
  'To ask': [
    ['sql', 'Run SQL on the lake: one query, a script, or a session at a prompt.', async () => import('./sql.ts')],
    ['panel', 'Decisions × metrics: the latest value knowable at each decision.', async () => import('./panel.ts')],
    ['serve', 'Answer queries and panels over HTTP; read-only, until stopped.', async () => import('./serve.ts')],
    [
      'mcp',
      'Answer an agent: the Model Context Protocol over standard input and output.',
      async () => import('./mcp.ts'),
    ],
    ['catalog list', 'List endpoints; by path, interval or dimension.', async () => import('./catalog.ts')],
    ['catalog show', 'Everything about one endpoint or resource.', async () => import('./catalog.ts')],
    ['catalog export', 'Every endpoint in full, as JSON; or for dbt.', async () => import('./catalog.ts')],
    ['registry get', 'One record: the provider now beside the lake.', async () => import('./registry-look.ts')],
    ['registry list', 'A list: the provider now beside the lake.', async () => import('./registry-look.ts')],
  ],
  'To prove a result': [
    ['lookahead', 'Prove or disprove that a query looks ahead.', async () => import('./lookahead.ts')],
    ['stress', 'Run a query under longer lags and at earlier versions.', async () => import('./stress.ts')],
    ['stamp', 'Run a query and pin all that its result was made from.', async () => import('./stamp.ts')],
    ['replay', 'Run a stamped result again and compare it bit for bit.', async () => import('./stamp.ts')],
    ['explain-change', 'Which commit and which points changed a result.', async () => import('./explain-change.ts')],
  ],
  'To trust the lake': [
    ['status', 'Whether the lake can be trusted today.', async () => import('./status.ts')],
    ['registry status', 'Where the registry stands.', async () => import('./registry.ts')],
    ['verify', 'Ask again for stored history and compare; prove every file.', async () => import('./verify.ts')],
    ['violations list', 'What differs upstream, and what is refused.', async () => import('./violations.ts')],
    ['violations accept', 'Take note of what differs, with the reason.', async () => import('./violations.ts')],
    ['audit availability', 'Availability rules against observed arrivals.', async () => import('./audit.ts')],
    ['versions', 'What every version added, replaced and removed.', async () => import('./versions.ts')],
    ['doctor', 'Find what is wrong with a lake and say the remedy.', async () => import('./doctor.ts')],
  ],
  'To keep it in order': [
    ['views', 'Make lake.duckdb and lake.sql anew; also after a lake was moved.', async () => import('./views.ts')],
    ['compact', 'Merge small files; re-date points by changed rules.', async () => import('./compact.ts')],
    ['vacuum', 'Remove superseded files; a dry run without --yes.', async () => import('./vacuum.ts')],
    ['catalog check', 'Validate the catalogue and the config.', async () => import('./catalog.ts')],
    ['catalog drift', 'Compare the catalogue with what the provider lists.', async () => import('./drift.ts')],
    ['catalog import', "Add endpoints from a provider's own listing.", async () => import('./import.ts')],
  ],
  'To share and keep copies': [
    ['publish', 'Write the lake as Delta tables, to a folder or a bucket.', async () => import('./publish.ts')],
    ['pull', 'Mirror a lake: only what is missing travels.', async () => import('./pull.ts')],
    ['backup', 'Keep the lake a second time, beside any job.', async () => import('./pull.ts')],
    ['restore', 'Make a lake from a backup: every file is checked.', async () => import('./pull.ts')],
  ],
}

/** Every command, in the order of `--help` and of the command reference. */
export const commandTable: readonly CommandEntry[] = Object.entries(tasks).flatMap(([task, rows]) =>
  rows.map(([name, summary, module]) => ({ name, summary, task, load: async () => commandOf(name, summary, module) })),
)

/** The command of that name among what its module exports. */
async function commandOf(...[name, summary, module]: Row): Promise<Command> {
  const found = Object.values(await module()).find((one): one is CommandSpec => isNamed(one, name))
  if (found === undefined) throw new RangeError(`no module has the command ${name}`)
  return { ...found, summary }
}

function isNamed(one: unknown, name: string): boolean {
  return typeof one === 'object' && one !== null && Reflect.get(one, 'name') === name
}
