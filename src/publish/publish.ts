import { LakeError, usage } from '../errors.ts'
import type { Catalogue } from '../catalog/catalogue.ts'
import type { CommitDeps } from '../ledger/commit.ts'
import { heldVersions, liveFiles } from '../ledger/held.ts'
import { pin } from '../store/lock.ts'
import type { JobDeps } from '../ledger/job.ts'
import { liesIn } from '../store/disk.ts'
import { Engine } from '../store/engine.ts'
import { places } from '../store/layout.ts'
import { buildViews } from '../views/build.ts'
import { noTable, type TableState } from './actions.ts'
import { type Change, changeOf, type Target } from './changes.ts'
import { type At, commitChange, lastMark, requireFit } from './commit.ts'
import type { Destination } from './destination.ts'
import { type Logs, readTable, requireFree, requireOwn } from './log.ts'
import { lostOf } from './lost.ts'
import { type Mark, type Portions, usualPortions } from './ranges.ts'
import { publishLake } from './publish-lake.ts'
import { publishing, type PublishingRun } from './publishing.ts'
import { schemaString } from './schema.ts'
import { publishedTables } from './tables.ts'
import { publishVersions, versionsTable } from './versions.ts'
import { columnsFor, type Writing } from './write.ts'
import { readerTexts } from './readers/texts.ts'

/** What is published, and where. */
export interface PublishInput {
  readonly root: string
  readonly catalogue: Catalogue
  readonly to: Destination
  /** Tests have smaller ones. */
  readonly portions?: Portions
  /** Whether journal, stamps and files are copied to `lake/`, too. */
  readonly withLake?: boolean
  /** Whether the bytes of what is there are read and compared, too, not only names and sizes. */
  readonly verify?: boolean
}

/** What a publish did; tables that were as they should be are not named. */
export interface PublishSummary {
  readonly destination: string
  readonly lake: string
  /** The lake version that the tables tell of now. */
  readonly version: number
  readonly tables: Readonly<Record<string, PublishedChange>>
  /** Files that the tables named and that were gone, cut or changed there; they were brought again. */
  readonly lost: { readonly missing: number; readonly changed: number }
  /** What travelled to `lake/`, where that was asked for. */
  readonly lake_copy?: { readonly version: number; readonly files: number; readonly bytes: number }
}

/** The version that a table got, and the files that it gained and lost. */
export interface PublishedChange {
  readonly delta_version: number
  readonly files_added: number
  readonly files_removed: number
  readonly bytes_added: number
}

/** Brings the tables of a destination up to the newest version of the lake, each by one commit, `versions` last. */
export async function publish(
  input: PublishInput,
  deps: JobDeps & { readonly signal: AbortSignal },
): Promise<PublishSummary> {
  const { root, to } = input
  if (!to.uri.includes('://') && liesIn(root, to.uri))
    throw usage(`destination ${to.uri}`, { expected: 'a folder outside the lake', got: `one in ${root}` })
  return await publishing({ root, name: 'publish' }, deps, async (run) => {
    // What is the newest now or becomes it later is kept from vacuum, until the last file of it was read.
    await using _ = await pin(root, `${run.id}-tables`, { ...deps.holder, since: deps.nowMicros() })
    const value = await published(input, deps, run)
    if (input.withLake !== true) return value
    const copy = { root, to, version: value.version, run: run.id, scratch: run.spool.file('lake') }
    const thorough = input.verify === true
    const { version, files, bytes } = await publishLake({ ...copy, thorough }, deps)
    return { ...value, lake_copy: { version, files, bytes } }
  })
}

async function published(
  { root, catalogue, to, portions = usualPortions, verify = false }: PublishInput,
  deps: CommitDeps & { readonly signal: AbortSignal },
  { ledger, begin, id, lake, spool }: PublishingRun,
): Promise<PublishSummary> {
  const { version } = await buildViews(ledger, { catalogue, deps, into: spool.file('.') })
  using engine = await Engine.open(spool.file(places.database), {
    readOnly: true,
    lean: true,
    tempDirectory: spool.file('duckdb'),
  })
  const logs: Logs = { to, engine, local: spool.file }
  const tables = publishedTables({ root, catalogue, files: liveFiles(ledger, { version }) })
  const states = await readAll(logs, [...tables.map(({ name }) => name), versionsTable], lake)
  const held = heldVersions(ledger).find((one) => one.version === version)
  if (!held) throw new RangeError(`the index has no version ${version}`)
  const at: At = {
    lake,
    version,
    at: held.committed_at,
    digest: held.digest,
    program: deps.program,
    now: () => Math.floor(deps.nowMicros() / 1000),
  }
  const mended = await requireFit(engine, to, states, at)
  const mark = `${lake.slice(0, 8)}-${String(version).padStart(10, '0')}-${id}-${Math.floor(deps.random() * 36 ** 6).toString(36)}`
  const writing: Writing = { ...logs, mark, now: at.now, portions }
  const done: Record<string, PublishedChange> = {}
  const count = { missing: 0, changed: 0 }
  await begin({ version, destination: to.uri }, () => ({ version, tables: Object.keys(done).length, ...count }))
  const lost = new Map<string, ReadonlySet<string>>()
  for (const [name, state] of states) {
    if (deps.signal.aborted) throw stopped(to)
    const { missing, changed } = await lostOf(logs, name, state, verify)
    count.missing += missing.size
    count.changed += changed.size
    lost.set(name, new Set([...missing, ...changed]))
  }
  for (const table of tables) {
    if (deps.signal.aborted) throw stopped(to)
    const state = states.get(table.name) ?? noTable
    const own = lost.get(table.name) ?? new Set()
    if (table.follows !== undefined && own.size === 0 && isAsFar(state, states.get(table.follows))) continue
    const next = await publishTable(writing, { table, state, lost: own }, at, mended)
    if (!next) continue
    states.set(table.name, next.state)
    done[table.name] = publishedChange(next.state, next.change)
  }
  const versionsChanged = await publishVersions(writing, states, at, lost.get(versionsTable) ?? new Set())
  if (versionsChanged) done[versionsTable] = publishedChange(versionsChanged.state, versionsChanged.change)
  await publishTexts(to)
  return { destination: to.uri, lake, version, tables: done, lost: count }
}

/** Writes what other engines read the tables by; what is there already stays. */
async function publishTexts(to: Destination): Promise<void> {
  for (const { path, text } of readerTexts(to.uri)) {
    const there = await to.read(path)
    if (there?.toString('utf8') !== text) await to.replace(path, text)
  }
}

/** The newest version of each table; that of somebody else is refused before anything is written. */
async function readAll(logs: Logs, names: readonly string[], lake: string): Promise<Map<string, TableState>> {
  const states = new Map<string, TableState>()
  await requireFree(logs.to, '_delta_log')
  for (const name of names) {
    const state = await readTable(logs, name)
    requireOwn(logs.to, name, state, lake)
    if (state.version < 0) await requireFree(logs.to, name)
    states.set(name, state)
  }
  return states
}

/** One table's change and commit; undefined where it is as it should be. */
async function publishTable(
  writing: Writing,
  { table, state, lost }: Omit<Target, 'columns'>,
  at: At,
  mended: number,
): Promise<{ readonly state: TableState; readonly change: Change } | undefined> {
  const columns = await columnsFor(writing.engine, table.rows({ version: 0, at: 0 }))
  const last = lastMark(state)
  const counts = last && last.version >= mended && isSchema(state, columns) && last.at <= at.at
  const step = { last: counts ? last : undefined, now: { version: at.version, at: at.at } satisfies Mark }
  const change = await changeOf(writing, { table, columns, state, lost }, step)
  if (!change && state.version >= 0 && isSchema(state, columns)) return undefined
  return await commitChange(writing, { name: table.name, columns, state }, change ?? { add: [], leave: [] }, at)
}

/** Whether a table tells of the lake version that another one tells of, or a later one. */
function isAsFar(state: TableState, other: TableState = noTable): boolean {
  return (lastMark(state)?.version ?? -1) >= (lastMark(other)?.version ?? 0)
}

function isSchema(state: TableState, columns: Parameters<typeof schemaString>[0]): boolean {
  return state.metaData?.schemaString === schemaString(columns)
}

function publishedChange(state: TableState, { add, leave }: Change): PublishedChange {
  const bytes_added = add.reduce((sum, { size }) => sum + size, 0)
  return { delta_version: state.version, files_added: add.length, files_removed: leave.length, bytes_added }
}

function stopped({ uri }: Destination): LakeError {
  return new LakeError('stopped', {
    subject: `publishing to ${uri}`,
    got: 'an interrupt',
    next: 'the same command goes on',
  })
}
