import { withFeatures } from './follow.ts'
import { describeOutcome } from '../../sources/http/outcome.ts'
import { readFeedAhead, registryStatus, type RegistryStatus } from '../../sources/registry/status.ts'
import { registrySnapshot, registrySync } from '../../sources/registry/snapshot-and-sync.ts'
import { type RegistrySummary, verdictOf, type RegistryEvent } from '../../sources/registry/run.ts'
import { registryState } from '../../sources/registry/staging.ts'
import { isBegun } from '../../lake/store/new-lake.ts'
import { Ledger } from '../../lake/ledger/ledger.ts'
import { isVerbose } from '../cli/context.ts'
import { formatCounts, cut, formatLabelled, span, table, several } from '../../base/figures.ts'
import { answering, type Call, type CommandAnswer, type Typed } from '../cli/spec.ts'
import { askingWorld, besideWorld, spareHeap } from '../cli/world.ts'
import { kinds } from '../../base/option-kinds.ts'
import type { Resource } from '../../catalog/catalogue.ts'
import { LakeError, usage } from '../../base/errors.ts'
import type { Filters } from '../../sources/registry/reading.ts'
import { endedBy } from '../../sources/http/request-rows.ts'
import type { Value } from '../../sources/registry/json.ts'
import { fetchLive, type RecordBeside, withHeldSide } from '../../sources/registry/live-records.ts'
import { hint } from '../../base/suggestion.ts'

const jobOptions = {
  '--accept-shrink': 'apply a snapshot even if it loses a resource or many records',
  '--max-requests N': 'stop after N requests',
  '--provider-moved': 'the provider has a new address: accept it for this lake',
}

export const registrySnapshotCommand = answering({
  viewsAfter: true,
  recorded: true,
  asks: true,
  options: jobOptions,
  details: `The snapshot is one request. If the provider's limit refuses it, pitlake reads the lists instead. Differences from the stored
state become history. If a snapshot loses a resource or many records, pitlake holds it back (exit 4) until you pass --accept-shrink.`,
  answer: async (call) => await runJob(call, 'snapshot', registrySnapshot),
})

export const registrySyncCommand = answering({
  viewsAfter: true,
  recorded: true,
  asks: true,
  options: jobOptions,
  details: `If the lake has no snapshot yet, or if the feed has begun a new epoch, sync first takes a snapshot. All pages of one sync and the
cursor make one version. An hourly sync is enough.`,
  answer: async (call) => {
    spareHeap()
    return await runJob(call, 'sync', registrySync)
  },
})

export const registryStatusCommand = answering({
  options: { '--offline': 'send no request to the provider' },
  details: `If you have configured the registry, one request shows whether its feed has news since the last sync.`,
  answer: async (call) => {
    const { settings, options, catalogue, now } = call
    using ledger = await Ledger.openToRead(settings.data)
    const { cursor } = registryState(ledger)
    const behind = options.offline || cursor === null ? null : await isBehind(call, cursor)
    const status = await registryStatus(ledger, catalogue, now(), behind)
    return { document: status, words: () => inWords(status) }
  },
})

/** Job options for a call that is no job. */
const noJob = { acceptShrink: false, maxRequests: null, providerMoved: false } as const

async function runJob(call: Call<typeof jobOptions>, job: string, run: typeof registrySync) {
  const { options, settings, catalogue } = call
  const { acceptShrink, maxRequests = null, providerMoved } = options
  const input = { settings, catalogue, acceptShrink, maxRequests, providerMoved }
  const summary = await run(input, { ...askingWorld(call, `registry ${job}`), onEvent: registryProgress(call) })
  return await withFeatures(call, (version) => {
    const done = { ...summary, version }
    return { document: done, words: () => summaryText(done), error: verdictOf(done) }
  })
}

/** Reports on stderr what happens on the way. */
export function registryProgress(call: Typed): (event: RegistryEvent) => void {
  const say = (line: string): void => call.stderr(`${line}\n`)
  return (event) => {
    if (event.kind === 'note') say(`note: ${event.text}`)
    if (event.kind === 'committed') say(`committed version ${event.version}, ${several(event.files, 'file')}`)
    if (event.kind === 'asking' && event.event.kind === 'waiting')
      say(`waiting ${span(event.event.waitMs / 1000)} (${event.event.why})`)
    if (event.kind === 'answered' && isVerbose(call)) say(`${event.ask.path}: ${describeOutcome(event.outcome)}`)
  }
}

/** Whether the provider's feed continues after a cursor; null if it is not set up or does not answer. */
async function isBehind(call: Call, cursor: string): Promise<boolean | null> {
  const { settings, stderr } = call
  const { url, key } = settings.registry
  if (url === null || key === null || !isBegun(settings.data)) return null
  const feed = await readFeedAhead({ ...call, ...noJob }, besideWorld(call), cursor)
  if (feed.kind !== 'stopped') return feed.ahead
  stderr(`note: the provider's feed was not read: ${feed.words}\n`)
  return null
}

function summaryText(summary: RegistrySummary): string {
  const { records, unknown, findings, schema_changes: changes, snapshot_date: date } = summary
  const all = Object.values(unknown).reduce((sum, count) => sum + count, 0)
  const odd = all === 0 ? '' : `, ${all} of unknown types`
  const counts = Object.entries(records).map(([name, count]) => `${count} ${name}`)
  return formatLabelled([
    ['version', String(summary.version)],
    ['requests', String(summary.requests)],
    ['snapshot', date === null ? 'none added' : `${date}, from the ${summary.source}`],
    ['feed', `${several(summary.events, 'event')} in ${several(summary.pages, 'page')}${odd}`],
    ['history', `${summary.opened} opened, ${summary.updated} updated, ${summary.closed} closed`],
    ['records', counts.join(', ')],
    findings !== 0 && ['findings', `${findings} (table registry_findings)`],
    changes !== 0 && ['schema', `${changes} changes (view schema_changes)`],
  ])
}

function inWords(status: RegistryStatus): string {
  const { limits, feed_at, behind, first_snapshot: first, last_snapshot: last } = status
  const lists = status.last_snapshot_source === 'lists' ? ' (from the lists)' : ''
  const read = `read to its tail at ${feed_at}, ${span(status.cursor_age ?? 0)} ago`
  const room = (most: number | null, left: number | null, unit: string): string =>
    `${most ?? '-'} ${unit} (${left ?? '-'} left)`
  const minute = room(limits.per_minute, limits.per_minute_remaining, 'a minute')
  const ahead = behind === true ? 'yes: run pitlake registry sync' : 'no, at the head of the feed'
  const lines = formatLabelled([
    ['snapshots', `first ${first ?? '-'}, last ${last ?? '-'}${lists}`],
    ['epoch', String(status.epoch)],
    ['feed', feed_at === null ? 'never read to its tail' : read],
    ['behind', behind === null ? 'not known' : ahead],
    ['limits', `${minute}, ${room(limits.daily, limits.daily_remaining, 'a day')}`],
    limits.snapshots_from !== null && ['', `snapshots are refused until ${limits.snapshots_from}`],
    ['schema', `${status.schema_changes} changes since the first snapshot (view schema_changes)`],
    ['304', several(status.not_modified, 'answer')],
  ])
  const rows = Object.entries(status.records).map(([name, open]) => [name, open, status.versions[name] ?? 0])
  const events = status.events.map((event) => [
    `${event.type}${event.known ? '' : ' (unknown)'}`,
    event.op,
    event.events,
  ])
  const more = events.length === 0 ? '' : `\n${table(['entity type', 'op', 'events'], events)}`
  return `${lines}${table(['table', 'records', 'versions'], rows)}${more}`
}

const resourceAbout = 'issuers, products or another one that `registry status` lists'
const resourceArg = { '<RESOURCE>': [resourceAbout, kinds.list('resources')] } as const

const diffOptions = {
  '--filter KEY=VALUE': {
    kind: kinds.pair('KEY=VALUE'),
    about: 'only records that match every filter; not with an ID',
    repeatable: true,
  },
} as const

type DiffOptions = typeof diffOptions

export const registryDiffCommand = answering({
  asks: true,
  args: { ...resourceArg, '[ID]': 'id of one record (default: all records)' },
  options: diffOptions,
  details: `Requests the present records from the provider and compares them with the stored ones. Stores nothing.

With an ID, * marks each member that differs. The order of keys does not count. Without an ID, * marks records that differ, +
records that only the provider has, and - records that only the lake has. The list of deployments has only verified ones.`,
  answer: async (call) => {
    const resource = resourceOf(call)
    const [, id] = call.args
    return id === undefined ? await diffRecords(call, resource) : await diffRecord(call, resource, id)
  },
})

async function diffRecord(call: Call<DiffOptions>, resource: Resource, id: string): Promise<CommandAnswer> {
  if (call.options.filter.length > 0) throw usage('--filter', { expected: 'no ID with it', got: id })
  const { address, records } = await looked(call, resource, { id })
  using ledger = await existingLake(call)
  return await withHeldSide(ledger, resource, async ({ entities, beside }) => {
    const [record] = await beside(new Map([[id, records.get(id) ?? null]]))
    const expected = `an id of ${resource.name}`
    const got = `${id}, which neither the provider nor the lake knows`
    if (!record || (record.held === null && record.offered === null))
      throw usage('registry diff', { expected, got, next: hint(id, [...entities.keys()]) })
    return { document: { resource: resource.name, address, ...record }, words: () => recordText(address, record) }
  })
}

async function diffRecords(call: Call<DiffOptions>, resource: Resource): Promise<CommandAnswer> {
  const filters = filtersOf(call.options.filter, resource)
  const { address, records: shown } = await looked(call, resource, { filters })
  using ledger = await existingLake(call)
  return await withHeldSide(ledger, resource, async ({ fitting, beside }) => {
    const ids = [...new Set([...shown.keys(), ...fitting(filters)])].toSorted()
    const records = await beside(new Map(ids.map((id) => [id, shown.get(id) ?? null])))
    const count = (mark: string): number => records.filter((record) => record.mark === mark).length
    const counts = Object.fromEntries(Object.keys(marks).map((mark) => [mark, count(mark)]))
    const document = { resource: resource.name, filters, address, counts, records }
    return { document, words: () => listText(address, counts, records) }
  })
}

function resourceOf({ args: [name = ''], catalogue: { resources } }: Call): Resource {
  const found = resources.get(name)
  if (found) return found
  const knownNames = [...resources.keys()]
  throw usage('RESOURCE', { expected: knownNames.join(', '), got: name, next: hint(name, knownNames) })
}

function filtersOf(pairs: readonly (readonly [string, string])[], { name, filters }: Resource): Filters {
  const read = new Map<string, string>()
  for (const [key, value] of pairs) {
    const expected = `a filter of ${name}: ${filters.join(', ')}`
    if (!filters.includes(key)) throw usage('--filter', { expected, got: key, next: hint(key, filters) })
    if (read.has(key)) throw usage('--filter', { expected: 'each filter once', got: `${key} twice` })
    read.set(key, value)
  }
  return Object.fromEntries(read)
}

async function looked(call: Call, resource: Resource, what: { id: string } | { filters: Filters }) {
  const got = await fetchLive({ ...call, ...noJob }, besideWorld(call), { resource, what })
  if (got.kind === 'shown') return got
  if (got.kind === 'refused')
    throw usage('--filter', { expected: 'values that the provider takes', got: JSON.stringify(what) })
  throw verdictOf(endedBy(got)) ?? new LakeError('unexpected', { subject: got.words })
}

async function existingLake({ settings: { data } }: Call): Promise<Ledger | null> {
  return isBegun(data) ? await Ledger.openToRead(data) : null
}

const marks = {
  same: [' ', 'the same on both sides'],
  differs: ['*', 'differs'],
  only_held: ['-', 'only in the lake'],
  only_upstream: ['+', 'only upstream'],
} as const

const width = 80

function recordText(address: string, record: RecordBeside): string {
  const { mark, differences, held, offered } = record
  const names = [...new Set([...Object.keys(held ?? {}), ...Object.keys(offered ?? {})])]
  const first = Math.min(24, Math.max(6, ...names.map((name) => name.length)))
  const each = Math.floor((width - 2 - first - 4) / 2)
  const line = (sign: string, name: string, here: string, there: string): string =>
    `${sign} ${cut(name, first).padEnd(first)}  ${cut(here, each).padEnd(each)}  ${cut(there, each)}`.trimEnd()
  const rows = names.map((name) =>
    line(differences.includes(name) ? '*' : ' ', name, textOf(held?.[name]), textOf(offered?.[name])),
  )
  const what = mark === 'differs' ? `differs in ${differences.length} of ${names.length} members` : marks[mark][1]
  return `${[cut(`${address}: ${what}`, width), line(' ', 'member', 'held', 'provider now'), ...rows].join('\n')}\n`
}

function listText(address: string, counts: Readonly<Record<string, number>>, records: readonly RecordBeside[]): string {
  const first = Math.min(40, Math.max(2, ...records.map(({ id }) => id.length)))
  const lines = records.map(({ id, mark, differences }) => {
    const [sign, words] = marks[mark]
    return (
      `${sign} ${cut(id, first).padEnd(first)}  ` +
      `${words}${mark === 'differs' ? ` in ${differences.join(', ')}` : ''}`
    )
  })
  const head = `${address}: ${several(records.length, 'record')}, ${formatCounts(counts) || 'none'}`
  return [head, ...lines].map((line) => `${cut(line, width)}\n`).join('')
}

function textOf(value: Value | undefined): string {
  return value === undefined ? '' : typeof value === 'string' ? value : JSON.stringify(value)
}
