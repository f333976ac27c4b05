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
    name: 'plan',
    summary: 'what a fetch would ask, and what it would cost',
    load: async () => (await import('./plan.ts')).planCommand,
  },
  {
    name: 'sandbox',
    summary: 'serve both APIs locally with synthetic data',
    load: async () => (await import('./sandbox.ts')).command,
  },
]
