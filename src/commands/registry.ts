import { describeOutcome } from '../net/outcome.ts'
import { readFeedAhead, type RegistryStatus, registryStatus } from '../registry/status.ts'
import { registrySnapshot, registrySync } from '../registry/snapshot-and-sync.ts'
import {
  type RegistryDeps,
  type RegistryEvent,
  type RegistryInput,
  type RegistrySummary,
  verdictOf,
} from '../registry/run.ts'
import { registryState } from '../registry/state.ts'
import { isBegun } from '../store/begin.ts'
import { Ledger } from '../ledger/ledger.ts'
import { isVerbose } from './context.ts'
import { span } from '../words/figures.ts'
import { labelled, table } from '../words/table.ts'
import { type CommandAnswer, answering, type CommandContext, type Deps, type Input } from './spec.ts'
import { askingWorld, besideWorld, spareHeap } from './world.ts'

const jobOptions = {
  '--accept-shrink': 'apply a snapshot even if it loses a resource or many records',
  '--max-requests N': 'stop after so many requests',
  '--provider-moved': 'the provider has a new address: accept it for this lake',
}

/** `registry snapshot`: the whole registry as it is now, as dated tables. */
export const snapshotCommand = answering({
  name: 'registry snapshot',
  ends: [3, 4, 5, 6, 7],
  recorded: true,
  asks: true,
  options: jobOptions,
  details:
    'One request; where the provider refuses it by its own limit, the lists are read instead. What differs from the\nheld state becomes history. A snapshot that loses too much is held back (exit 4) until --accept-shrink.',
  answer: async (input, context, deps) => await asked(input, context, deps, 'snapshot', registrySnapshot),
})

/** `registry sync`: the change feed up to its tail. */
export const syncCommand = answering({
  name: 'registry sync',
  ends: [3, 4, 5, 6, 7],
  recorded: true,
  asks: true,
  options: jobOptions,
  details:
    'Begins with a snapshot where the lake has none yet, or where the feed has begun a new epoch. All pages of one\nsync and the cursor are one version; polling hourly is enough.',
  answer: async (input, context, deps) => {
    spareHeap()
    return await asked(input, context, deps, 'sync', registrySync)
  },
})

/** `registry status`: where the feed stands. */
export const registryStatusCommand = answering({
  name: 'registry status',
  ends: [4],
  options: { '--offline': 'do not ask the provider how far its feed has gone' },
  details: 'With the registry in the environment one request tells whether its feed has gone on since the last sync.',
  answer: async (input, context, deps) => {
    const job = { ...context, acceptShrink: false, maxRequests: null, providerMoved: false }
    using ledger = await Ledger.openToRead(job.settings.data)
    const { cursor } = registryState(ledger)
    const behind = input.options.offline || cursor === null ? null : await isBehind(job, deps, cursor)
    const status = await registryStatus(ledger, job.catalogue, deps.now(), behind)
    return { document: status, words: () => inWords(status) }
  },
})

/** Has a job done with the real world behind it. */
async function asked(
  input: Input<typeof jobOptions>,
  context: CommandContext,
  deps: Deps,
  job: string,
  run: (input: RegistryInput, deps: RegistryDeps) => Promise<RegistrySummary>,
): Promise<CommandAnswer<RegistrySummary>> {
  const { acceptShrink, maxRequests = null, providerMoved } = input.options
  const own = { ...context, acceptShrink, maxRequests, providerMoved }
  const world = askingWorld(deps, `registry ${job}`, own.catalogue)
  const summary = await run(own, { ...world, onEvent: registryProgress(deps, isVerbose(input, deps)) })
  return { document: summary, words: () => summaryText(summary), error: verdictOf(summary) }
}

/** Says on stderr what happens on the way. */
export function registryProgress(deps: Deps, verbose: boolean): (event: RegistryEvent) => void {
  return (event) => {
    if (event.kind === 'note') deps.stderr(`note: ${event.text}\n`)
    if (event.kind === 'committed') deps.stderr(`committed version ${event.version}, ${event.files} files\n`)
    if (event.kind === 'asking' && event.event.kind === 'waiting')
      deps.stderr(`waiting ${span(event.event.waitMs / 1000)} (${event.event.why})\n`)
    if (event.kind === 'answered' && verbose) deps.stderr(`${event.ask.path}: ${describeOutcome(event.outcome)}\n`)
  }
}

/** Whether the provider's feed goes on after a cursor; null where it is not set up or does not answer. */
async function isBehind(job: RegistryInput, deps: Deps, cursor: string): Promise<boolean | null> {
  const { url, key } = job.settings.registry
  if (url === null || key === null || !isBegun(job.settings.data)) return null
  const asked = await readFeedAhead(job, besideWorld(deps), cursor)
  if (asked.kind === 'stopped') deps.stderr(`note: the provider's feed was not read: ${asked.words}\n`)
  return asked.kind === 'stopped' ? null : asked.ahead
}

function summaryText(summary: RegistrySummary): string {
  const { records, unknown, findings, schema_changes: changes } = summary
  const all = Object.values(unknown).reduce((sum, count) => sum + count, 0)
  const odd = all === 0 ? '' : `, ${all} of unknown types`
  const counts = Object.entries(records).map(([name, count]) => `${count} ${name}`)
  return labelled([
    ['version', String(summary.version)],
    ['requests', String(summary.requests)],
    [
      'snapshot',
      summary.snapshot_date === null ? 'none added' : `${summary.snapshot_date}, from the ${summary.source}`,
    ],
    ['feed', `${summary.events} events in ${summary.pages} pages${odd}`],
    ['history', `${summary.opened} opened, ${summary.updated} updated, ${summary.closed} closed`],
    ['records', counts.join(', ')],
    findings !== 0 && ['findings', `${findings} (table registry_findings)`],
    changes !== 0 && ['schema', `${changes} changes (view schema_changes)`],
  ])
}

function inWords(status: RegistryStatus): string {
  const { limits, feed_at, behind, first_snapshot: first, last_snapshot: last } = status
  const none = '-'
  const lists = status.last_snapshot_source === 'lists' ? ' (from the lists)' : ''
  const lines = labelled([
    ['snapshots', `first ${first ?? none}, last ${last ?? none}${lists}`],
    ['epoch', String(status.epoch)],
    [
      'feed',
      feed_at === null
        ? 'never read to its tail'
        : `read to its tail at ${feed_at}, ${span(status.cursor_age ?? 0)} ago`,
    ],
    [
      'behind',
      behind === null ? 'not known' : behind ? 'yes: run pitlake registry sync' : 'no, at the head of the feed',
    ],
    [
      'limits',
      `${limits.per_minute ?? none} a minute (${limits.per_minute_remaining ?? none} left), ${limits.daily ?? none} a day (${limits.daily_remaining ?? none} left)`,
    ],
    limits.snapshots_from !== null && ['', `snapshots are refused until ${limits.snapshots_from}`],
    ['schema', `${status.schema_changes} changes since the first snapshot (view schema_changes)`],
    ['304', `${status.not_modified} answers`],
  ])
  const rows = Object.entries(status.records).map(([name, open]) => [name, open, status.versions[name] ?? 0])
  const events = status.events.map(({ type, known, op, events: count }) => [
    known ? type : `${type} (unknown)`,
    op,
    count,
  ])
  const more = events.length === 0 ? '' : `\n${table(['entity type', 'op', 'events'], events)}`
  return `${lines}${table(['table', 'records', 'versions'], rows)}${more}`
}
