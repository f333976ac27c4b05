import type { CommandSpec } from './spec.ts'

/** One line of `pitlake --help`; the command itself is loaded only when it runs. */
export interface CommandEntry {
  readonly name: string
  readonly summary: string
  readonly load: () => Promise<CommandSpec>
}

/** Every command, in the order of `--help` and of the command reference. */
export const commandTable: readonly CommandEntry[] = [
  entry('init', 'write a commented pitlake.yaml and .env.example', async () => import('./init.ts')),
  entry('catalog list', 'list endpoints, filtered', async () => import('./catalog.ts')),
  entry('catalog show', 'everything about one endpoint', async () => import('./catalog.ts')),
  entry('catalog export', 'every endpoint in full, as JSON', async () => import('./catalog.ts')),
  entry('catalog check', 'validate the catalogue and the config', async () => import('./catalog.ts')),
  entry('catalog import', "add endpoints from a provider's own listing", async () => import('./import.ts')),
  entry('catalog drift', 'compare the catalogue with what the provider lists now', async () => import('./drift.ts')),
  entry('plan', 'what a fetch would ask, and what it would cost', async () => import('./plan.ts')),
  entry('fetch', 'bring the metrics up to date; resumable', async () => import('./fetch.ts')),
  entry('daily', 'what cron calls: everything that keeps a lake fresh', async () => import('./daily.ts')),
  entry('watch', 'keep the lake fresh: each series when it is due', async () => import('./watch.ts')),
  entry('verify', 'ask again for stored history and compare; prove every file', async () => import('./verify.ts')),
  entry('violations list', 'what differs upstream', async () => import('./violations.ts')),
  entry('violations accept', 'take note of what differs, with the reason', async () => import('./violations.ts')),
  entry('audit availability', 'availability rules against observed arrivals', async () => import('./audit.ts')),
  entry('status', 'whether the lake can be trusted today', async () => import('./status.ts')),
  entry('lookahead', 'prove or disprove that a query looks ahead', async () => import('./lookahead.ts')),
  entry('views', 'make lake.duckdb and lake.sql anew', async () => import('./views.ts')),
  entry('compact', 'merge small files; re-date points by changed rules', async () => import('./compact.ts')),
  entry('vacuum', 'remove superseded files that no kept version needs', async () => import('./vacuum.ts')),
  entry('versions', 'what every version of the lake added, replaced, removed', async () => import('./versions.ts')),
  entry('doctor', 'find what is wrong with a lake and say the remedy', async () => import('./doctor.ts')),
  entry('sql', 'one query, a script, or a session on the lake', async () => import('./sql.ts')),
  entry('panel', 'decisions × metrics, one column each', async () => import('./panel.ts')),
  entry('mcp', 'answer an agent over standard input and output', async () => import('./mcp.ts')),
  entry('serve', 'answer queries and panels over HTTP, read-only', async () => import('./serve.ts')),
  entry('stamp', 'run a query and pin all that its result was made from', async () => import('./stamp.ts')),
  entry('replay', 'run a stamped result again, bit for bit', async () => import('./stamp.ts')),
  entry(
    'explain-change',
    'which commit and which points changed a stamped result',
    async () => import('./explain-change.ts'),
  ),
  entry('stress', 'a query under longer lags and at earlier versions', async () => import('./stress.ts')),
  entry('publish', 'the lake as Delta tables, in a folder or a bucket', async () => import('./publish.ts')),
  entry('pull', 'mirror a published lake, or the one in a folder', async () => import('./pull.ts')),
  entry('backup', 'keep the lake a second time, beside any job', async () => import('./backup.ts')),
  entry('restore', 'make a lake from a backup', async () => import('./pull.ts')),
  entry('registry snapshot', 'take a dated snapshot of the whole registry', async () => import('./registry.ts')),
  entry('registry sync', 'follow the change feed of the registry', async () => import('./registry.ts')),
  entry('registry get', 'one record: the provider now beside the lake', async () => import('./registry-look.ts')),
  entry('registry list', 'a list: the provider now beside the lake', async () => import('./registry-look.ts')),
  entry('registry status', 'where the registry stands', async () => import('./registry.ts')),
  entry('sandbox', 'serve both APIs locally with synthetic data', async () => import('./sandbox.ts')),
]

/** The command of that name among what its module exports. */
function entry(name: string, summary: string, module: () => Promise<object>): CommandEntry {
  const load = async (): Promise<CommandSpec> => {
    const found = Object.values(await module()).find((one): one is CommandSpec => isNamed(one, name))
    if (found === undefined) throw new RangeError(`no module has the command ${name}`)
    return found
  }
  return { name, summary, load }
}

function isNamed(one: unknown, name: string): boolean {
  return typeof one === 'object' && one !== null && Reflect.get(one, 'name') === name
}
