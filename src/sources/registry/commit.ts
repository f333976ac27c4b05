import { commit, type CommitDeps, type Draft, type StagedFile, type Ticket } from '../../lake/ledger/commit.ts'
import type { Version } from '../../lake/ledger/draft.ts'
import type { Engine } from '../../lake/store/engine.ts'
import { day, formatDate, parseMicros } from '../../base/time.ts'
import { columnsMark, recordTables, tableColumns } from './columns.ts'
import { findingLine, readFindings, readHeld, readKeys, readLastEvents, readTexts } from './status.ts'
import {
  fold,
  type Memory,
  newPoll,
  observeState,
  type Poll,
  type RecordFinding,
  type SchemaChange,
  suspects,
  findUnseen,
  withMissing,
} from './history.ts'
import { datedColumns, type LayerPlan, type Layers, writeDated } from './dated-tables.ts'
import { type Constants, eventTaker, Lines, type PollChange, writeFolded, writeStep } from './poll-lines.ts'
import {
  committedCursor,
  enginesOf,
  type FinishedPoll,
  relistFile,
  passingDraft,
  type PollContext,
  stageRawFiles,
  readRaw,
  registryState,
  type RegistryState,
  type StagedVersion,
  stageLines,
  stateDraft,
  type WithEngine,
} from './staging.ts'
import { requireFileError } from '../../lake/store/file-errors.ts'
import { dataVersion, parseRegistryFile, versionedName } from '../../lake/store/layout.ts'
import { LakeError } from '../../base/errors.ts'
import { liveFiles } from '../../lake/ledger/index-queries.ts'
import type { Ledger } from '../../lake/ledger/ledger.ts'
import type { Spool } from '../../lake/ledger/spool-sweep.ts'
import { type BodyRead, readPage, readSnapshot, type Resources } from './bodies.ts'
import { cutApart } from './body-records.ts'

/** A poll that was folded into steps of history. */
interface PollOutcome {
  readonly memory: Memory
  readonly change: PollChange
  /** Contradictions that are not on record yet. */
  readonly findings: readonly RecordFinding[]
  /** Keys, values and types that were never seen before. */
  readonly newKeys: readonly SchemaChange[]
}

/** A poll that was folded and committed. */
export interface CommittedPoll extends PollOutcome {
  readonly version: Version
  /** The date of the snapshot; null for a feed, or if it added nothing. */
  readonly date: string | null
}

/** Folds a poll into steps of history that continue the stored ones. */
async function foldPoll(
  context: Pick<PollContext, 'ledger' | 'withEngine' | 'resources'>,
  { poll, lines, wholeSource, disagreeing }: Pick<FinishedPoll, 'poll' | 'lines' | 'wholeSource' | 'disagreeing'>,
): Promise<PollOutcome> {
  const { ledger, withEngine, resources } = context
  const names = wholeSource === null ? suspects(poll) : [...suspects(poll), ...findUnseen(poll)]
  const memory: Memory = await withEngine(async (engine) => ({
    resources,
    texts: await readTexts(ledger, engine, names),
    keys: await readKeys(ledger, engine),
  }))
  const change = newChange()
  const folded = fold(poll, memory, (step) => writeStep(lines, change, step))
  const findings = await newFindings(context, [...folded.findings, ...disagreements(disagreeing)])
  writeFolded(lines, change, { ...folded, findings })
  return { memory, change, findings, newKeys: folded.newKeys }
}

/** Creates the results of a poll before any change. */
const newChange = (): PollChange => ({ texts: new Map(), growth: {}, opened: 0, updated: 0, closed: 0 })

/** Folds a poll into steps of history and commits them with cursor, bodies and, for a whole state, its dated tables. */
export async function commitPoll(context: PollContext, finished: FinishedPoll): Promise<CommittedPoll> {
  const folded = await foldPoll(context, finished)
  let date: string | null = null
  const version = await commit(
    context.ledger,
    async (ticket) => {
      const drafted = await draftPoll(context, finished, folded, ticket)
      date = drafted.date
      return drafted.draft
    },
    context.deps,
  )
  return { ...folded, version, date }
}

function disagreements(disagreeing: readonly string[]): RecordFinding[] {
  const detail = 'the array of deployments and the product that embeds it differ; the array is kept'
  return disagreeing.map((id) => ({ kind: 'embedded_disagrees', resource: 'deployments', id, detail }))
}

/** Filters out findings that are on record and that every snapshot would repeat. */
async function newFindings(
  { ledger, withEngine }: Pick<PollContext, 'ledger' | 'withEngine'>,
  found: readonly RecordFinding[],
) {
  if (found.length === 0) return found
  const knownFindings = await withEngine(async (engine) => await readFindings(ledger, engine))
  return found.filter((finding) => finding.kind !== 'embedded_disagrees' || !knownFindings.has(findingLine(finding)))
}

/**
 * Makes the files of a poll and drafts their commit; returns it with the date of its dated tables. A poll without news
 * makes no files.
 */
async function draftPoll(
  { job, run, provider, providerMoved, ledger, spool, resources, withEngine, rawDays }: Omit<PollContext, 'deps'>,
  finished: FinishedPoll,
  { memory, change }: Pick<PollOutcome, 'memory' | 'change'>,
  ticket: Ticket,
): Promise<{ readonly draft: Draft; readonly date: string | null }> {
  const { poll, requests, passing, wholeSource, lines, cursor, epoch, as_of } = finished
  const state = registryState(ledger)
  const date = formatDate(ticket.committed_at / 1e6)
  const name = versionedName(ticket.version, run)
  const files: StagedFile[] = []
  const staged: StagedVersion = { ledger, spool, resources, lines, ticket, date, name, files }
  const base: Draft = { job, run, provider, providerMoved, requests, passing: passingDraft(passing) }
  const tables = appendedTables(resources)
  const fresh = tables.some((table) => lines.size(table).rows > 0)
  const again = wholeSource !== null && epoch === state.epoch && isShown(state, date, poll)
  // A new cursor alone is no news: a provider may change its cursors with each answer.
  if (!fresh && (again || wholeSource === null)) {
    const further = wholeSource === null ? { after: committedCursor(ledger), cursor } : undefined
    return { draft: { ...base, passing: passingDraft({ ...passing, ...(further && { further }) }) }, date: null }
  }
  for (const some of groupTables(lines, tables))
    await withEngine(async (engine) => {
      for (const table of some) await append(staged, engine, table, as_of)
    })
  const layers =
    wholeSource === null ? undefined : await datedTables({ made: staged, withEngine, state, memory, change }, finished)
  const tags = await stageRawFiles(staged, finished, fresh)
  const old = oldRaw(ledger, formatDate(ticket.committed_at / 1e6 - rawDays * day))
  const remove = old.filter((path) => !files.some((file) => file.path === path))
  const keptTags = Object.entries(tags).filter(([, tag]) => !remove.includes(tag.raw))
  const records: Record<string, number> = { ...state.records }
  for (const [table, rows] of Object.entries(change.growth)) records[table] = (records[table] ?? 0) + rows
  const last = wholeSource && { date, observed_at: ticket.committed_at, as_of, source: wholeSource }
  const draft = {
    ...base,
    add: files,
    remove,
    state: stateDraft({
      cursor,
      epoch,
      records,
      ...(layers && { layers, last }),
      ...(last && !state.first && { first: last }),
    }),
    passing: passingDraft({ ...passing, tags: Object.fromEntries(keptTags) }),
  }
  return { draft, date: layers ? date : null }
}

/** Returns the raw files of which every label is older than the configured days. */
function oldRaw(ledger: Ledger, before: string): string[] {
  const newest = new Map<string, string>()
  for (const { path, label } of liveFiles(ledger, { table: 'raw' }))
    if (label > (newest.get(path) ?? '')) newest.set(path, label)
  return [...newest].filter(([, label]) => label < before).map(([path]) => path)
}

/** Whether the dated tables of this date already show the stored state. */
function isShown({ last }: Pick<RegistryState, 'last'>, date: string, poll: Poll): boolean {
  if (last?.date !== date) return false
  for (const entities of poll.storedEntities.values())
    for (const { at } of entities.values()) if (at > last.observed_at) return false
  return true
}

function appendedTables(resources: Resources): readonly string[] {
  const tables = [...recordTables(resources).keys()]
  return [...tables.map((table) => `history.${table}`), 'absorbed', 'schema_changes', 'registry_findings', 'events']
}

/** Bytes of lines that justify an engine of their own. */
const manyBytes = 4_000_000

/** Groups the tables that have lines: large ones alone, all others together. */
function groupTables(lines: Lines, tables: readonly string[]): (readonly string[])[] {
  const large = tables.filter((table) => lines.size(table).bytes >= manyBytes)
  const small = tables.filter((table) => lines.size(table).rows > 0 && !large.includes(table))
  return [...large.map((table) => [table]), ...(small.length > 0 ? [small] : [])]
}

async function append(staged: StagedVersion, engine: Engine, table: string, as_of: string | null): Promise<void> {
  const at = staged.ticket.committed_at
  const constants: Constants = { at, ...(table.startsWith('history.') && asOfColumns(as_of)) }
  await stageLines(staged, engine, { table, lines: table, id: staged.name, date: null, constants, meta: {} })
}

/** Returns the time up to which a body is valid, as written and in microseconds; null if it cannot be read. */
function asOfColumns(as_of: string | null): { readonly as_of: string | null; readonly as_of_at: number | null } {
  return { as_of, as_of_at: as_of === null ? null : (parseMicros(as_of) ?? null) }
}

/** The sources of the dated tables of a version, in addition to the poll. */
interface DatedSources extends Pick<PollOutcome, 'memory' | 'change'> {
  readonly made: StagedVersion
  readonly withEngine: WithEngine
  /** The state before the poll. */
  readonly state: Pick<RegistryState, 'layers' | 'last'>
}

/** Makes the dated tables of a whole state; returns the layers of each. */
async function datedTables(
  { made, withEngine, state: { layers, last }, memory, change }: DatedSources,
  { poll, as_of, wholeSource }: Pick<FinishedPoll, 'poll' | 'as_of' | 'wholeSource'>,
): Promise<Record<string, Layers>> {
  const { lines, name: id } = made
  const next: Record<string, Layers> = {}
  const observed_at = made.ticket.committed_at
  const constants = { snapshot_date: made.date, observed_at, ...asOfColumns(as_of), source: wholeSource }
  const plans = writeDated(lines, { poll, change, memory, layers, lastAt: last?.observed_at ?? 0 })
  await withEngine(async (engine) => {
    for (const plan of plans) {
      const written = await writeLayer(made, engine, plan, { held: layers[plan.table], as_of })
      if (written) next[plan.table] = written
    }
    for (const [resource, { base, delta, rows }] of Object.entries(next)) {
      lines.add('snapshots', { resource, base: layerName(base), delta: layerName(delta), rows })
      for (const path of [base, delta]) if (path !== null) relistFile(made, resource, path)
    }
    const snapshots = { table: 'snapshots', lines: 'snapshots' }
    await stageLines(made, engine, { ...snapshots, id, date: null, constants, meta: {} })
  })
  return next
}

function layerName(path: string | null): string | null {
  const name = path?.split('/').at(-1)
  return name?.replace(/\.parquet$/, '') ?? null
}

async function writeLayer(
  version: StagedVersion,
  engine: Engine,
  plan: LayerPlan,
  { held, as_of }: { readonly held: Layers | undefined; readonly as_of: string | null },
): Promise<Layers | null> {
  const { table, kind, rows, lines } = plan
  if (kind === 'same') return held ? { ...held, rows } : null
  const { ticket, date, resources } = version
  const id = `${version.name}-${kind}`
  const constants: Constants = { layer: id, ...asOfColumns(as_of), observed_at: ticket.committed_at }
  const meta = { layer: kind, columns: columnsMark(tableColumns(table, resources)) }
  const computed = lines.startsWith('history.') ? datedColumns(table, resources) : {}
  const staged = await stageLines(version, engine, { table, lines, id, date, constants, made: computed, meta })
  if (kind === 'delta') return held ? { ...held, delta: staged?.path ?? held.delta, rows } : null
  return staged ? { base: staged.path, base_at: ticket.committed_at, delta: null, rows } : null
}

/** A version to be folded once more, between the lake as it was and as it became. */
interface Again {
  readonly resources: Resources
  readonly deps: CommitDeps
  readonly spool: Spool
  readonly before: Ledger
  readonly after: Ledger
  /** Arrays that the snapshot misses are empty ones. */
  readonly acceptShrink: boolean
}

/** Repeats a poll from its bodies; returns the files that this makes, in the spool. */
export async function foldAgain(again: Again): Promise<readonly StagedFile[]> {
  const { before, after, resources, spool, deps } = again
  const { lake, version, committed_at, provider } = after.head()
  const run = runOf(after)
  if (lake === null || provider === null || run === null) throw beyond(version, 'nothing says which run made it')
  const context: PollContext = {
    ledger: before,
    withEngine: enginesOf(spool),
    spool,
    resources,
    run,
    job: 'doctor',
    provider,
    providerMoved: false,
    rawDays: 1,
    deps,
  }
  const storedEntities = await context.withEngine(
    async (engine) => await readHeld(before, engine, [...resources.keys()]),
  )
  using lines = new Lines(spool)
  const finished = await pollAgain(again, context.withEngine, newPoll(storedEntities), lines)
  const folded = await foldPoll(context, finished)
  const { draft } = await draftPoll(context, finished, folded, { lake, version, committed_at })
  return draft.add ?? []
}

function beyond(version: number, got: string): LakeError {
  const expected = 'the bodies that made it'
  return new LakeError('integrity', {
    subject: `version ${version}`,
    expected,
    got,
    next: 'take its files from a copy',
  })
}

/** Returns the run after which the files of the newest version are named; null if there are none. */
function runOf(after: Ledger): string | null {
  const versionPrefix = versionedName(after.head().version, '')
  for (const { path } of liveFiles(after)) {
    const id = parseRegistryFile(path)?.id
    if (id?.startsWith(versionPrefix) === true) return id.slice(versionPrefix.length).replace(/-(?:base|delta)$/, '')
  }
  return null
}

/** Repeats a poll from the bodies that its commit listed; cursors and times are those of the commit. */
async function pollAgain(again: Again, withEngine: WithEngine, poll: Poll, lines: Lines): Promise<FinishedPoll> {
  const { before, after, resources } = again
  const then = registryState(before)
  const now = registryState(after)
  const { committed_at } = after.head()
  const wholeSource = now.last?.observed_at === committed_at ? now.last.source : null
  const { cursor, epoch, last: shot } = now
  const nothing = { raws: [], requests: [], passing: {}, tags: {}, disagreeing: [], as_of: shot?.as_of ?? null }
  const frame = { ...nothing, poll, lines, cursor: cursor ?? '', epoch, wholeSource }
  // For a whole state without news no body is stored: the stored state is complete.
  if (wholeSource !== null && !isFresh(after)) return frame
  if (wholeSource === 'lists') throw beyond(after.head().version, 'it was put together from lists')
  if (wholeSource === null) {
    const last = await withEngine(async (engine) => await readLastEvents(before, engine))
    const take = eventTaker(poll, lines, last)
    let as_of: string | null = null
    for (const body of await bodies(again, 'feed')) {
      const page = sound(after, readPage(body, resources))
      for (const event of page.events) take(event)
      as_of = page.as_of ?? as_of
    }
    return { ...frame, as_of }
  }
  const [body] = await bodies(again, 'snapshot')
  const { records, disagreeing } = sound(after, readSnapshot(body, resources))
  const first = then.last === null
  const shown = again.acceptShrink ? withMissing(records, resources) : records
  observeState(poll, { records: shown, source: wholeSource, first, inferred: !first && now.epoch > then.epoch })
  return { ...frame, disagreeing }
}

/** Whether the newest version added more than dated tables. */
function isFresh(after: Ledger): boolean {
  const { version } = after.head()
  return liveFiles(after).some(({ path, table }) => {
    const parsedName = parseRegistryFile(path)
    return parsedName?.date === null && table !== 'snapshots' && dataVersion(path) === version
  })
}

function sound<T>(after: Ledger, read: BodyRead<T>): T {
  if (!read.ok) throw beyond(after.head().version, read.reason)
  return read.value
}

/** Reads the bodies of a kind that the commit listed, in the order of their arrival: at least one. */
async function bodies({ after }: Again, kind: string): Promise<[Buffer, ...Buffer[]]> {
  const { version } = after.head()
  const listed = liveFiles(after, { table: 'raw' }).filter((file) => file.meta['kind'] === kind)
  const foundBodies: Buffer[] = []
  for (const { path, rows, added_version } of listed) {
    if (added_version !== version) continue
    const bytes = await readRaw(after.root, path).catch((error: unknown) => {
      requireFileError(error, `reading ${path}`)
      throw beyond(version, `${path} is not there any more, or damaged`)
    })
    const cutBodies = cutApart(Buffer.from(bytes))
    if (cutBodies.length !== rows) throw beyond(version, `${path} holds ${cutBodies.length} bodies, not ${rows}`)
    foundBodies.push(...cutBodies)
  }
  const [first, ...furtherBodies] = foundBodies
  if (!first) throw beyond(version, `no body of a ${kind} is listed with it`)
  return [first, ...furtherBodies]
}
