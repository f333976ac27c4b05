import type { CommandEntry, CommandSpec } from '../cli/spec.ts'

/** A row of the table of commands. */
interface CommandRow {
  readonly name: string
  /** Verb, object and effect, in at most 60 characters. */
  readonly summary: string
  /** Whether the first screen of `--help` shows it; `pitlake help all` shows every command. */
  readonly isCommon?: true
  /** Exit codes that it may end with in addition to 0, 1 and 2. */
  readonly exits: readonly number[]
  readonly load: () => Promise<CommandSpec>
}

/** Commands by what they are for, in the order of `--help` and of the command reference. */
const commandsByTask: Readonly<Record<string, readonly CommandRow[]>> = {
  'To begin': [
    {
      name: 'demo',
      summary: 'Show a look-ahead and how it is found, in about 10 s',
      isCommon: true,
      exits: [6],
      load: async () => (await import('./demo.ts')).demoCommand,
    },
    {
      name: 'init',
      summary: 'Write a commented pitlake.yaml and .env.example',
      isCommon: true,
      exits: [6],
      load: async () => (await import('./init.ts')).initCommand,
    },
    {
      name: 'init-ci',
      summary: 'Write a workflow and a git hook that judge queries',
      exits: [6],
      load: async () => (await import('./init-ci.ts')).initCiCommand,
    },
    {
      name: 'sandbox',
      summary: 'Serve both APIs on this machine with synthetic data',
      exits: [],
      load: async () => (await import('./sandbox.ts')).sandboxCommand,
    },
    {
      name: 'completion',
      summary: 'Print the completion script of bash, zsh or fish',
      exits: [],
      load: async () => (await import('./completion.ts')).completions(commandTable).completionCommand,
    },
  ],
  'To add data': [
    {
      name: 'plan',
      summary: 'Show what a fetch would request and what it would cost',
      isCommon: true,
      exits: [4, 6, 7],
      load: async () => (await import('./plan.ts')).planCommand,
    },
    {
      name: 'fetch',
      summary: 'Bring the selected metrics up to date, resumably',
      isCommon: true,
      exits: [3, 4, 5, 6, 7],
      load: async () => (await import('./fetch.ts')).fetchCommand,
    },
    {
      name: 'import',
      summary: 'Import your own files as the series own/NAME',
      isCommon: true,
      exits: [4, 6, 7],
      load: async () => (await import('./import.ts')).importCommand,
    },
    {
      name: 'features',
      summary: 'Compute the expected values of declared features',
      exits: [4, 5, 6, 7],
      load: async () => (await import('./features.ts')).featuresCommand,
    },
    {
      name: 'registry snapshot',
      summary: 'Take a dated snapshot of the whole registry',
      exits: [3, 4, 5, 6, 7],
      load: async () => (await import('./registry.ts')).registrySnapshotCommand,
    },
    {
      name: 'registry sync',
      summary: 'Follow the change feed of the registry to its end',
      isCommon: true,
      exits: [3, 4, 5, 6, 7],
      load: async () => (await import('./registry.ts')).registrySyncCommand,
    },
    {
      name: 'daily',
      summary: 'Run everything that keeps a lake fresh, for cron',
      isCommon: true,
      exits: [3, 4, 5, 6, 7],
      load: async () => (await import('./daily.ts')).dailyCommand,
    },
    {
      name: 'watch',
      summary: 'Request each series when its next point is expected',
      exits: [3, 4, 6, 7],
      load: async () => (await import('./watch.ts')).watchCommand,
    },
  ],
  'To query': [
    {
      name: 'sql',
      summary: 'Run a query, a script or an interactive SQL session',
      isCommon: true,
      exits: [4, 5, 6],
      load: async () => (await import('./sql.ts')).sqlCommand,
    },
    {
      name: 'panel',
      summary: 'Look up metric values as known at each decision time',
      isCommon: true,
      exits: [4, 5, 6],
      load: async () => (await import('./sql.ts')).panelCommand,
    },
    {
      name: 'serve',
      summary: 'Answer queries and panels over HTTP, with a page',
      isCommon: true,
      exits: [4, 6],
      load: async () => (await import('./serve.ts')).serveCommand,
    },
    {
      name: 'mcp',
      summary: 'Answer an agent over the Model Context Protocol',
      exits: [4],
      load: async () => (await import('./mcp.ts')).mcpCommand,
    },
    {
      name: 'catalog list',
      summary: 'List endpoints by path, interval or dimension',
      exits: [],
      load: async () => (await import('./catalog.ts')).catalogListCommand,
    },
    {
      name: 'catalog show',
      summary: 'Show all that is known of one endpoint or resource',
      exits: [],
      load: async () => (await import('./catalog.ts')).catalogShowCommand,
    },
    {
      name: 'catalog export',
      summary: 'Export every endpoint as JSON, or as sources for dbt',
      exits: [6],
      load: async () => (await import('./catalog.ts')).catalogExportCommand,
    },
    {
      name: 'registry diff',
      summary: 'Compare stored registry records with the provider',
      exits: [3, 4, 5, 6],
      load: async () => (await import('./registry.ts')).registryDiffCommand,
    },
  ],
  'To prove a result': [
    {
      name: 'lookahead',
      summary: 'Test whether a query uses data from its future',
      isCommon: true,
      exits: [4, 5, 6],
      load: async () => (await import('./lookahead.ts')).lookaheadCommand,
    },
    {
      name: 'stress',
      summary: 'Run a query with longer lags and at earlier versions',
      isCommon: true,
      exits: [4, 5, 6, 7],
      load: async () => (await import('./stress.ts')).stressCommand,
    },
    {
      name: 'stamp',
      summary: 'Run a query and record what its result depends on',
      isCommon: true,
      exits: [4, 5, 6, 7],
      load: async () => (await import('./stamp.ts')).stampCommand,
    },
    {
      name: 'replay',
      summary: 'Run a stamped query again and compare bit for bit',
      exits: [4, 5],
      load: async () => (await import('./stamp.ts')).replayCommand,
    },
    {
      name: 'when',
      summary: 'Find the time from whose knowledge a table comes',
      exits: [4, 5],
      load: async () => (await import('./when.ts')).whenCommand,
    },
    {
      name: 'certify',
      summary: 'Write a file that proves a stamped result to others',
      exits: [4],
      load: async () => (await import('./certify.ts')).certifyCommand,
    },
    {
      name: 'preregister',
      summary: 'Record a query before anyone has seen its result',
      exits: [4, 7],
      load: async () => (await import('./head.ts')).preregisterCommand,
    },
    {
      name: 'explain-change',
      summary: 'Find the commit and the points that changed a result',
      exits: [4, 5, 6],
      load: async () => (await import('./stamp.ts')).explainChangeCommand,
    },
  ],
  'To trust the lake': [
    {
      name: 'status',
      summary: 'Judge whether the lake can be trusted today',
      isCommon: true,
      exits: [4, 6],
      load: async () => (await import('./status.ts')).statusCommand,
    },
    {
      name: 'registry status',
      summary: 'Show how far the stored registry reaches',
      exits: [4],
      load: async () => (await import('./registry.ts')).registryStatusCommand,
    },
    {
      name: 'verify',
      summary: 'Check every file and compare history with the provider',
      isCommon: true,
      exits: [3, 4, 5, 6, 7],
      load: async () => (await import('./verify.ts')).verifyCommand,
    },
    {
      name: 'head',
      summary: 'Print the signed head of the log of all versions',
      exits: [4],
      load: async () => (await import('./head.ts')).headCommand,
    },
    {
      name: 'keygen',
      summary: 'Make a key that signs heads and print its public half',
      exits: [4],
      load: async () => (await import('./head.ts')).keygenCommand,
    },
    {
      name: 'violations list',
      summary: 'List values that differ upstream and refused series',
      exits: [4],
      load: async () => (await import('./violations.ts')).violationsListCommand,
    },
    {
      name: 'violations acknowledge',
      summary: 'Acknowledge violations with a reason',
      exits: [4, 6, 7],
      load: async () => (await import('./violations.ts')).violationsAcknowledgeCommand,
    },
    {
      name: 'audit availability',
      summary: 'Compare availability rules with observed arrivals',
      exits: [4],
      load: async () => (await import('./audit.ts')).auditAvailabilityCommand,
    },
    {
      name: 'versions',
      summary: 'List what each version added, replaced and removed',
      exits: [4],
      load: async () => (await import('./upkeep.ts')).versionsCommand,
    },
    {
      name: 'doctor',
      summary: 'Find damage in a lake and name the remedy',
      isCommon: true,
      exits: [3, 4, 5, 6, 7],
      load: async () => (await import('./doctor.ts')).doctorCommand,
    },
  ],
  'To keep it in order': [
    {
      name: 'views',
      summary: 'Rebuild lake.duckdb and lake.sql',
      exits: [4, 6],
      load: async () => (await import('./upkeep.ts')).viewsCommand,
    },
    {
      name: 'compact',
      summary: 'Merge small files into larger ones',
      exits: [4, 5, 6, 7],
      load: async () => (await import('./upkeep.ts')).compactCommand,
    },
    {
      name: 'redate',
      summary: "Date stored points by today's availability rules",
      exits: [4, 6, 7],
      load: async () => (await import('./upkeep.ts')).redateCommand,
    },
    {
      name: 'vacuum',
      summary: 'Remove superseded files, after a dry run',
      exits: [4, 6, 7],
      load: async () => (await import('./upkeep.ts')).vacuumCommand,
    },
    {
      name: 'catalog check',
      summary: 'Validate the catalogue and the configuration',
      exits: [],
      load: async () => (await import('./catalog.ts')).catalogCheckCommand,
    },
    {
      name: 'catalog drift',
      summary: 'Compare the catalogue with what the provider lists',
      exits: [3, 4, 5, 6],
      load: async () => (await import('./catalog.ts')).catalogDriftCommand,
    },
    {
      name: 'catalog import',
      summary: "Add endpoints from a provider's own listing",
      exits: [3, 5, 6],
      load: async () => (await import('./catalog.ts')).catalogImportCommand,
    },
  ],
  'To share and keep copies': [
    {
      name: 'publish',
      summary: 'Write the lake as Delta tables to a folder or a bucket',
      exits: [3, 4, 5, 6, 7],
      load: async () => (await import('./copies.ts')).publishCommand,
    },
    {
      name: 'pull',
      summary: 'Mirror a lake by copying what is missing',
      exits: [3, 4, 5, 6, 7],
      load: async () => (await import('./copies.ts')).pullCommand,
    },
    {
      name: 'backup',
      summary: 'Copy the lake, also while jobs run',
      exits: [3, 4, 5, 6, 7],
      load: async () => (await import('./copies.ts')).backupCommand,
    },
    {
      name: 'restore',
      summary: 'Make a lake from a backup and check every file',
      exits: [3, 4, 5, 6, 7],
      load: async () => (await import('./copies.ts')).restoreCommand,
    },
  ],
}

/** Every command, in the order of `--help` and of the command reference. */
export const commandTable: readonly CommandEntry[] = Object.entries(commandsByTask).flatMap(([task, rows]) =>
  rows.map(({ name, summary, isCommon = false, exits, load }) => ({
    name,
    summary,
    task,
    isCommon,
    load: async () => ({ ...(await load()), name, summary, exits }),
  })),
)
