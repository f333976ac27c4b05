import type { CommandSpec } from './spec.ts'

/** One line of `pitlake --help`; the command itself is loaded only when it runs. */
export interface CommandEntry {
  readonly name: string
  readonly summary: string
  readonly load: () => Promise<CommandSpec>
}

/** Every command, in the order of `--help` and of the command reference. */
export const commandTable: readonly CommandEntry[] = [
  {
    name: 'init',
    summary: 'write a commented pitlake.yaml and .env.example',
    load: async () => (await import('./init.ts')).init,
  },
  { name: 'catalog list', summary: 'list endpoints, filtered', load: async () => (await import('./catalog.ts')).list },
  {
    name: 'catalog show',
    summary: 'everything about one endpoint',
    load: async () => (await import('./catalog.ts')).show,
  },
  {
    name: 'catalog export',
    summary: 'every endpoint in full, as JSON',
    load: async () => (await import('./catalog.ts')).exportAll,
  },
  {
    name: 'catalog check',
    summary: 'validate the catalogue and the config',
    load: async () => (await import('./catalog.ts')).check,
  },
  {
    name: 'catalog import',
    summary: "add endpoints from a provider's own listing",
    load: async () => (await import('./import.ts')).importListing,
  },
  {
    name: 'catalog drift',
    summary: 'compare the catalogue with what the provider lists now',
    load: async () => (await import('./drift.ts')).driftCommand,
  },
  {
    name: 'plan',
    summary: 'what a fetch would ask, and what it would cost',
    load: async () => (await import('./plan.ts')).planCommand,
  },
  {
    name: 'fetch',
    summary: 'bring the metrics up to date; resumable',
    load: async () => (await import('./fetch.ts')).fetchCommand,
  },
  {
    name: 'daily',
    summary: 'what cron calls: everything that keeps a lake fresh',
    load: async () => (await import('./daily.ts')).dailyCommand,
  },
  {
    name: 'verify',
    summary: 'ask again for stored history and compare; prove every file',
    load: async () => (await import('./verify.ts')).verifyCommand,
  },
  {
    name: 'violations list',
    summary: 'what differs upstream',
    load: async () => (await import('./violations.ts')).listCommand,
  },
  {
    name: 'violations accept',
    summary: 'take note of what differs, with the reason',
    load: async () => (await import('./violations.ts')).acceptCommand,
  },
  {
    name: 'audit availability',
    summary: 'availability rules against observed arrivals',
    load: async () => (await import('./audit.ts')).audit,
  },
  {
    name: 'status',
    summary: 'whether the lake can be trusted today',
    load: async () => (await import('./status.ts')).statusCommand,
  },
  {
    name: 'lookahead',
    summary: 'prove or disprove that a query looks ahead',
    load: async () => (await import('./lookahead.ts')).lookahead,
  },
  {
    name: 'views',
    summary: 'make lake.duckdb and lake.sql anew',
    load: async () => (await import('./views.ts')).viewsCommand,
  },
  {
    name: 'compact',
    summary: 'merge small files; re-date points by changed rules',
    load: async () => (await import('./compact.ts')).compactCommand,
  },
  {
    name: 'vacuum',
    summary: 'remove superseded files that no kept version needs',
    load: async () => (await import('./vacuum.ts')).vacuumCommand,
  },
  {
    name: 'versions',
    summary: 'what every version of the lake added, replaced, removed',
    load: async () => (await import('./versions.ts')).versionsCommand,
  },
  {
    name: 'doctor',
    summary: 'find what is wrong with a lake and say the remedy',
    load: async () => (await import('./doctor.ts')).doctorCommand,
  },
  {
    name: 'sql',
    summary: 'one query, a script, or a session on the lake',
    load: async () => (await import('./sql.ts')).sqlCommand,
  },
  {
    name: 'panel',
    summary: 'decisions × metrics, one column each',
    load: async () => (await import('./panel.ts')).panelCommand,
  },
  {
    name: 'stamp',
    summary: 'run a query and pin everything that its result was made from',
    load: async () => (await import('./stamp.ts')).stampCommand,
  },
  {
    name: 'replay',
    summary: 'run a stamped result again, bit for bit',
    load: async () => (await import('./stamp.ts')).replayCommand,
  },
  {
    name: 'registry snapshot',
    summary: 'take a dated snapshot of the whole registry',
    load: async () => (await import('./registry.ts')).snapshotCommand,
  },
  {
    name: 'registry sync',
    summary: 'follow the change feed of the registry',
    load: async () => (await import('./registry.ts')).syncCommand,
  },
  {
    name: 'registry status',
    summary: 'where the registry stands',
    load: async () => (await import('./registry.ts')).statusCommand,
  },
  {
    name: 'sandbox',
    summary: 'serve both APIs locally with synthetic data',
    load: async () => (await import('./sandbox.ts')).command,
  },
]
