import { storedHeads } from '../../trust/heads/head.ts'
import { signedText } from '../../base/merkle/note.ts'
import { LakeError, usage } from '../../base/errors.ts'
import type { Catalogue } from '../../catalog/catalogue.ts'
import type { CommitDeps } from '../../lake/ledger/commit.ts'
import { storedVersions, liveFiles } from '../../lake/ledger/index-queries.ts'
import { pin } from '../../lake/store/lock.ts'
import type { JobDeps } from '../../lake/ledger/job.ts'
import { liesIn } from '../../lake/store/disk.ts'
import { Engine, quote } from '../../lake/store/engine.ts'
import { places } from '../../lake/store/layout.ts'
import { buildViews } from '../../query/views/build.ts'
import { fileSql } from '../../query/views/relations.ts'
import { type Logs, noTable, publishedFile, readTable, requireFree, requireOwn, type TableState } from './log.ts'
import { changeOf, type TableChange, type Target } from './changes.ts'
import { type CommittedChange, type LakeVersion, commitChange, comparedAt, lastMark, requireFit } from './commit.ts'
import { type Destination, isLocal, stopAt } from './destination.ts'
import type { CopySummary } from './lake-copy.ts'
import { type Mark, type Portions, usualPortions } from './ranges.ts'
import { publishing, type PublishingRun, publishLake } from './lake.ts'
import {
  type PublishedColumn,
  columnsFor,
  microsSql,
  placeFile,
  schemaString,
  writeRows,
  type Writing,
} from './write.ts'
import { publishedTables, versionsTable } from './tables.ts'
import { storedRevisable } from '../../sources/points/revisable.ts'
import { readerTexts } from './readers/texts.ts'

/** Source and destination of a publish. */
interface PublishInput {
  readonly root: string
  readonly catalogue: Catalogue
  readonly to: Destination
  /** Tests have smaller ones. */
  readonly portions?: Portions
  /** Whether journal, stamps and files are copied to `lake/`, too. */
  readonly withLake?: boolean
  /** Whether the bytes of existing files are read and compared, too, not only names and sizes. */
  readonly verify?: boolean
}

/** Result of publishing the tables. */
export interface TablesPublished {
  /** URI of the destination. */
  readonly destination: string
  /** Id of the lake. */
  readonly lake: string
  /** The lake version that the tables show now. */
  readonly version: number
  /** Changes by table; tables without a change are absent. */
  readonly tables: Readonly<Record<string, PublishedChange>>
  /** Published files that were missing or changed at the destination; they were published again. */
  readonly lost: { readonly missing: number; readonly changed: number }
}

/** Result of a publish. */
export interface PublishSummary extends TablesPublished {
  /** The copy of the lake; undefined if none was requested. */
  readonly lake_copy: Pick<CopySummary, 'version' | 'files' | 'bytes'> | undefined
}

/** Brings the tables of a destination up to the newest version of the lake, each by one commit, `versions` last. */
export async function publish(
  input: PublishInput,
  deps: JobDeps & { readonly signal: AbortSignal },
): Promise<PublishSummary> {
  const { root, to } = input
  if (isLocal(to) && liesIn(root, to.uri))
    throw usage(`destination ${to.uri}`, { expected: 'a folder outside the lake', got: `one in ${root}` })
  return await publishing({ root, name: 'publish' }, deps, async (run) => {
    // Versions that are the newest now or become so later are kept from vacuum, until the last file of them was read.
    await using _ = await pin(root, `${run.id}-tables`, { ...deps.holder, since: deps.nowMicros() })
    const value = await published(input, deps, run)
    if (input.withLake !== true) return { ...value, lake_copy: undefined }
    const copy = { root, to, version: value.version, run: run.id, scratch: run.spool.file('lake') }
    const thorough = input.verify === true
    const { version, files, bytes } = await publishLake({ ...copy, thorough }, deps)
    return { ...value, lake_copy: { version, files, bytes } }
  })
}

async function published(
  { root, catalogue, to, portions = usualPortions, withLake = false, verify = false }: PublishInput,
  deps: CommitDeps & { readonly signal: AbortSignal },
  { ledger, begin, id, lake, spool }: PublishingRun,
): Promise<TablesPublished> {
  const { version } = await buildViews(ledger, { catalogue, deps, into: spool.file('.') })
  const frugal = { readOnly: true, tempDirectory: spool.file('duckdb') }
  using engine = await Engine.open(spool.file(places.database), frugal)
  const logs: Logs = { to, engine, local: spool.file }
  const tables = publishedTables({ root, catalogue, files: liveFiles(ledger, { version }) })
  const states = await readAll(logs, [...tables.map(({ name }) => name), versionsTable], lake)
  const publishedVersion = storedVersions(ledger).find((storedVersion) => storedVersion.version === version)
  if (!publishedVersion) throw new RangeError(`the index has no version ${version}`)
  const now = (): number => Math.floor(deps.nowMicros() / 1000)
  const at: LakeVersion = {
    lake,
    version,
    at: publishedVersion.committed_at,
    digest: publishedVersion.digest,
    program: deps.program,
    now,
  }
  const mended = await requireFit(engine, to, states, at)
  const chance = Math.floor(deps.random() * 36 ** 6).toString(36)
  const mark = `${lake.slice(0, 8)}-${String(version).padStart(10, '0')}-${id}-${chance}`
  const writing: Writing = { ...logs, mark, now: at.now, portions }
  const done: Record<string, PublishedChange> = {}
  const count = { missing: 0, changed: 0 }
  await begin({ version, destination: to.uri, lake: withLake }, () => ({
    version,
    tables: Object.keys(done).length,
    ...count,
  }))
  const files = [...states].flatMap(([name, { files: adds }]) =>
    [...adds.values()].map((add) => publishedFile(name, add)),
  )
  const reading = { local: logs.local('compared'), signal: deps.signal }
  const { missing, changed } = await comparedAt(to, files, verify ? reading : undefined)
  Object.assign(count, { missing: missing.size, changed: changed.size })
  const lostFiles = new Set([...missing, ...changed])
  for (const table of tables) {
    stopAt(deps.signal, `publishing to ${to.uri}`)
    const state = states.get(table.name) ?? noTable
    const lostOfTable = lostOf(table.name, state, lostFiles)
    if (table.follows !== undefined && lostOfTable.size === 0 && isAsFar(state, states.get(table.follows))) continue
    const next = await publishTable(writing, { table, state, lost: lostOfTable }, at, mended)
    if (!next) continue
    states.set(table.name, next.state)
    done[table.name] = publishedChange(next.state, next.change)
  }
  const versionsChanged = await publishVersions(writing, states, at, lostFiles)
  if (versionsChanged) done[versionsTable] = publishedChange(versionsChanged.state, versionsChanged.change)
  await publishTexts(to, storedRevisable(ledger))
  const [newest] = (await storedHeads(root)).slice(-1)
  if (newest) await to.replace('head.txt', signedText(newest.note))
  return {
    destination: to.uri,
    lake,
    version,
    tables: done,
    lost: count,
  }
}

/** Lists the files of a table that are missing or changed at the destination. */
function lostOf(table: string, { files }: TableState, all: ReadonlySet<string>): ReadonlySet<string> {
  return new Set([...files.values()].filter((add) => all.has(publishedFile(table, add).path)).map(({ path }) => path))
}

/** Writes the texts with which other engines read the tables; existing ones stay. */
async function publishTexts(to: Destination, revisable: readonly string[]): Promise<void> {
  for (const { path, text } of readerTexts(to.uri, revisable)) {
    const existing = await to.read(path)
    if (existing?.toString('utf8') !== text) await to.replace(path, text)
  }
}

/** Reads the newest version of each table; a table of others is refused before anything is written. */
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

/** Publishes one table's change in a commit; undefined if the table is up to date. */
async function publishTable(
  writing: Writing,
  { table, state, lost }: Omit<Target, 'columns'>,
  at: LakeVersion,
  mended: number,
) {
  const columns = await columnsFor(writing.engine, table.rows({ version: 0, at: 0 }))
  const last = lastMark(state)
  const counts = last && last.version >= mended && isSchema(state, columns) && last.at <= at.at
  const step = { last: counts ? last : undefined, now: { version: at.version, at: at.at } satisfies Mark }
  const change = await changeOf(writing, { table, columns, state, lost }, step)
  if (!change && state.version >= 0 && isSchema(state, columns)) return undefined
  return await commitChange(writing, { table, columns, state }, change ?? { add: [], leave: [] }, at)
}

/** Whether a table records the same lake version as another one, or a later one. */
function isAsFar(state: TableState, other: TableState = noTable): boolean {
  return (lastMark(state)?.version ?? -1) >= (lastMark(other)?.version ?? 0)
}

function isSchema(state: TableState, columns: readonly PublishedColumn[]): boolean {
  return state.metaData?.schemaString === schemaString(columns)
}

/** A table's new version, and its changes. */
export interface PublishedChange {
  /** Version of the Delta table. */
  readonly delta_version: number
  readonly files_added: number
  readonly files_removed: number
  readonly bytes_added: number
}

function publishedChange(state: TableState, { add, leave }: TableChange): PublishedChange {
  const bytes_added = add.reduce((sum, { size }) => sum + size, 0)
  return { delta_version: state.version, files_added: add.length, files_removed: leave.length, bytes_added }
}

const empty = `SELECT CAST(NULL AS BIGINT) AS lake_version, CAST(NULL AS TIMESTAMPTZ) AS lake_committed_at,
  CAST(NULL AS VARCHAR) AS table_name, CAST(NULL AS BIGINT) AS delta_version, CAST(NULL AS TIMESTAMPTZ) AS committed_at
  WHERE false`

/**
 * Notes the versions of all tables under the lake version that they record now, as the last commit of a publish;
 * undefined if that is noted already.
 */
async function publishVersions(
  writing: Writing,
  states: ReadonlyMap<string, TableState>,
  at: LakeVersion,
  all: ReadonlySet<string>,
): Promise<CommittedChange | undefined> {
  const state = states.get(versionsTable) ?? noTable
  const lostFiles = lostOf(versionsTable, state, all)
  const tables = [...states].filter(([name]) => name !== versionsTable)
  const stateFiles = [...state.files.values()]
  const paths = stateFiles.flatMap(({ path }) => (lostFiles.has(path) ? [] : [path]))
  const before = await bring(writing, paths)
  const versionRows = tables.map(([name, { version }]) => `(${quote(name)}, ${version})`).join(', ')
  const newest =
    `(SELECT table_name, delta_version FROM (${before}) QUALIFY dense_rank() OVER (ORDER BY lake_version ` +
    'DESC) = 1)'
  const current = `(SELECT * FROM (VALUES ${versionRows}) AS current (table_name, delta_version))`
  const [row] = await writing.engine.rows<{ differ: bigint }>(
    `SELECT count(*) AS differ FROM (FROM ${current} EXCEPT FROM ${newest})`,
  )
  if (state.version >= 0 && lostFiles.size === 0 && row?.differ === 0n) return undefined
  const rows = `SELECT * FROM (${before}) WHERE lake_version <> ${at.version}
    UNION ALL BY NAME SELECT CAST(${at.version} AS BIGINT) AS lake_version,
      ${microsSql(at.at)} AS lake_committed_at, table_name,
      CAST(delta_version AS BIGINT) AS delta_version, ${microsSql(at.now() * 1000)} AS committed_at FROM ${current}`
  const columns = await columnsFor(writing.engine, empty)
  const order = ['lake_version', 'table_name']
  const written = await writeRows(writing, versionsTable, { rows, columns, where: [], order })
  const add = [await placeFile(writing, versionsTable, '0', written, {})]
  return await commitChange(writing, { table: { name: versionsTable }, columns, state }, { add, leave: stateFiles }, at)
}

/**
 * Downloads files of the table and returns their rows as a SELECT over the local copies. A file that is missing is
 * refused: the rows are written anew without it, and the history in it would be lost.
 */
async function bring({ to, local }: Logs, paths: readonly string[]): Promise<string> {
  const parts: string[] = []
  for (const path of paths) {
    const file = local(`${versionsTable}-held-${parts.length}`)
    if (!(await to.get(`${versionsTable}/${path}`, file)))
      throw new LakeError('incomplete', {
        subject: `${to.uri}/${versionsTable}/${path}`,
        expected: 'a file that was listed a moment ago',
        got: 'no such file',
        next: 'the table stays as it was; run the same command again',
      })
    parts.push(`SELECT * FROM ${fileSql(file)}`)
  }
  return parts.length === 0 ? empty : parts.join(' UNION ALL BY NAME ')
}
