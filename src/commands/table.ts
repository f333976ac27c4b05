import type { CommandSpec } from './spec.ts'

/** One line of `pitlake --help`; the command itself is loaded only when it runs. */
export interface CommandEntry {
  readonly name: string
  readonly summary: string
  readonly load: () => Promise<CommandSpec>
}

/** Every command, in the order of `--help` and of the command reference. */
export const commandTable: readonly CommandEntry[] = [
  entry('init', 'write a commented pitlake.yaml and .env.example', async () => (await import('./init.ts')).init),
  entry('catalog list', 'list endpoints, filtered', async () => (await import('./catalog.ts')).list),
  entry('catalog show', 'everything about one endpoint', async () => (await import('./catalog.ts')).show),
  entry('catalog export', 'every endpoint in full, as JSON', async () => (await import('./catalog.ts')).exportAll),
  entry('catalog check', 'validate the catalogue and the config', async () => (await import('./catalog.ts')).check),
  entry(
    'catalog import',
    "add endpoints from a provider's own listing",
    async () => (await import('./import.ts')).importListing,
  ),
  entry(
    'catalog drift',
    'compare the catalogue with what the provider lists now',
    async () => (await import('./drift.ts')).driftCommand,
  ),
  entry('plan', 'what a fetch would ask, and what it would cost', async () => (await import('./plan.ts')).planCommand),
  entry('fetch', 'bring the metrics up to date; resumable', async () => (await import('./fetch.ts')).fetchCommand),
  entry(
    'daily',
    'what cron calls: everything that keeps a lake fresh',
    async () => (await import('./daily.ts')).dailyCommand,
  ),
  entry(
    'verify',
    'ask again for stored history and compare; prove every file',
    async () => (await import('./verify.ts')).verifyCommand,
  ),
  entry('violations list', 'what differs upstream', async () => (await import('./violations.ts')).listCommand),
  entry(
    'violations accept',
    'take note of what differs, with the reason',
    async () => (await import('./violations.ts')).acceptCommand,
  ),
  entry(
    'audit availability',
    'availability rules against observed arrivals',
    async () => (await import('./audit.ts')).audit,
  ),
  entry('status', 'whether the lake can be trusted today', async () => (await import('./status.ts')).statusCommand),
  entry(
    'lookahead',
    'prove or disprove that a query looks ahead',
    async () => (await import('./lookahead.ts')).lookahead,
  ),
  entry('views', 'make lake.duckdb and lake.sql anew', async () => (await import('./views.ts')).viewsCommand),
  entry(
    'compact',
    'merge small files; re-date points by changed rules',
    async () => (await import('./compact.ts')).compactCommand,
  ),
  entry(
    'vacuum',
    'remove superseded files that no kept version needs',
    async () => (await import('./vacuum.ts')).vacuumCommand,
  ),
  entry(
    'versions',
    'what every version of the lake added, replaced, removed',
    async () => (await import('./versions.ts')).versionsCommand,
  ),
  entry(
    'doctor',
    'find what is wrong with a lake and say the remedy',
    async () => (await import('./doctor.ts')).doctorCommand,
  ),
  entry('sql', 'one query, a script, or a session on the lake', async () => (await import('./sql.ts')).sqlCommand),
  entry('panel', 'decisions × metrics, one column each', async () => (await import('./panel.ts')).panelCommand),
  entry(
    'stamp',
    'run a query and pin everything that its result was made from',
    async () => (await import('./stamp.ts')).stampCommand,
  ),
  entry('replay', 'run a stamped result again, bit for bit', async () => (await import('./stamp.ts')).replayCommand),
  entry(
    'publish',
    'the lake as Delta tables, in a folder or a bucket',
    async () => (await import('./publish.ts')).publishCommand,
  ),
  entry(
    'pull',
    'mirror a lake from where it was published, or from its folder',
    async () => (await import('./pull.ts')).pullCommand,
  ),
  entry(
    'registry snapshot',
    'take a dated snapshot of the whole registry',
    async () => (await import('./registry.ts')).snapshotCommand,
  ),
  entry(
    'registry sync',
    'follow the change feed of the registry',
    async () => (await import('./registry.ts')).syncCommand,
  ),
  entry('registry status', 'where the registry stands', async () => (await import('./registry.ts')).statusCommand),
  entry('sandbox', 'serve both APIs locally with synthetic data', async () => (await import('./sandbox.ts')).command),
]

function entry(name: string, summary: string, load: CommandEntry['load']): CommandEntry {
  return { name, summary, load }
}
