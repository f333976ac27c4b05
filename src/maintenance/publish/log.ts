import { requireFileError } from '../../lake/store/file-errors.ts'
import { z } from 'zod'
import { LakeError, usage } from '../../base/errors.ts'
import type { StampedFile } from '../../lake/ledger/stamps.ts'
import { type Engine, quote, quotePath } from '../../lake/store/engine.ts'
import { writePrivate } from '../../lake/store/files.ts'
import { fileSql } from '../../query/views/relations.ts'
import type { Destination, Published } from './destination.ts'

/*
 * What Delta's log is made of (PROTOCOL.md of delta-io/delta): each line of a commit is one action. Only what we write
 * is named here; what somebody else's table says beside it is passed over, for such a table is refused anyway.
 */

const texts = z.record(z.string(), z.string().nullable()).readonly()
const some = texts.nullish().transform((map) => map ?? {})

/** Text by key. */
export type Texts = z.infer<typeof texts>

const addShape = z.object({
  /** The URI of the file's name, relative to the table. */
  path: z.string(),
  partitionValues: some,
  size: z.number(),
  /** Milliseconds since 1970. */
  modificationTime: z.number(),
  dataChange: z.boolean(),
  /** JSON: records, smallest and largest values, NULLs. */
  stats: z
    .string()
    .nullish()
    .transform((text) => text ?? '{}'),
  tags: some,
})

const removeShape = z.object({
  path: z.string(),
  /** Milliseconds since 1970. */
  deletionTimestamp: z
    .number()
    .nullish()
    .transform((value) => value ?? 0),
  dataChange: z.boolean(),
})

const metaDataShape = z.object({
  id: z.string(),
  name: z.string().nullish(),
  format: z.object({ provider: z.string(), options: some }),
  schemaString: z.string(),
  partitionColumns: z.array(z.string()).readonly(),
  createdTime: z.number().nullish(),
  configuration: some,
})

const txnShape = z.object({ appId: z.string(), version: z.number() })

const protocolShape = z.object({
  minReaderVersion: z.number(),
  minWriterVersion: z.number(),
  writerFeatures: z.array(z.string()).readonly().nullish(),
})

const actionShape = z.object({
  add: addShape.nullish(),
  remove: removeShape.nullish(),
  metaData: metaDataShape.nullish(),
  txn: txnShape.nullish(),
  protocol: protocolShape.nullish(),
  commitInfo: z.record(z.string(), z.unknown()).nullish(),
})

/** A file that belongs to the table from this version on. */
export type Add = Readonly<z.infer<typeof addShape>>
/** A file that has left the table. */
type Remove = Readonly<z.infer<typeof removeShape>>
/** Metadata action of a table. */
type MetaData = Readonly<z.infer<typeof metaDataShape>>
/** Protocol action: what readers and writers of the table must support. */
type Protocol = Readonly<z.infer<typeof protocolShape>>
/** One line of the log: one of its keys is set. Derived, like the types above, from the shape that reads it. */
export type Action = Readonly<z.infer<typeof actionShape>>

/** Parses an action of the log; throws on anything else. */
const parseAction = (text: string): Action => actionShape.parse(JSON.parse(text))

/** Table feature that no other program knows: others read the tables, and write nothing into them. */
const ownFeature = 'pitlake'

/** Protocol that lets every reader of Delta read, and no other writer write. */
export const ownProtocol: Protocol = { minReaderVersion: 1, minWriterVersion: 7, writerFeatures: [ownFeature] }

/** State of a table at one of its versions. */
export interface TableState {
  /** Version of the table; -1 if there is none yet. */
  readonly version: number
  readonly metaData: MetaData | undefined
  readonly protocol: Protocol | undefined
  readonly txns: ReadonlyMap<string, number>
  readonly files: ReadonlyMap<string, Add>
  /** Files that left the table and may still exist. */
  readonly removed: ReadonlyMap<string, Remove>
  /** The version of the newest checkpoint; -1 for none. */
  readonly checkpoint: number
}

/** State of a table that does not exist. */
export const noTable: TableState = {
  version: -1,
  metaData: undefined,
  protocol: undefined,
  txns: new Map(),
  files: new Map(),
  removed: new Map(),
  checkpoint: -1,
}

/** Computes the state after the actions of a version. */
function applied(state: TableState, version: number, actions: readonly Action[]): TableState {
  const txns = new Map(state.txns)
  const files = new Map(state.files)
  const removed = new Map(state.removed)
  let { metaData, protocol } = state
  for (const action of actions) {
    const { add, remove, txn } = action
    if (add) files.set(add.path, add)
    if (add) removed.delete(add.path)
    if (remove) files.delete(remove.path)
    if (remove) removed.set(remove.path, remove)
    if (txn) txns.set(txn.appId, txn.version)
    metaData = action.metaData ?? metaData
    protocol = action.protocol ?? protocol
  }
  return { ...state, version, metaData, protocol, txns, files, removed }
}

/** Returns the log folder of a table, relative to the destination. */
export const logFolder = (table: string): string => `${table}/_delta_log`

/** Returns the path of the commit of a version: `points/_delta_log/00000000000000000012.json`. */
export const commitFile = (table: string, version: number): string => `${logFolder(table)}/${digits(version)}.json`

/** Returns the path of the checkpoint of a version. */
function checkpointFile(table: string, version: number): string {
  return `${logFolder(table)}/${digits(version)}.checkpoint.parquet`
}

const hintFile = (table: string): string => `${logFolder(table)}/_last_checkpoint`

const digits = (version: number): string => String(version).padStart(20, '0')

/** Parses the version and the kind of a file of the log; undefined for any other name. */
export function logEntry({ path }: Pick<Published, 'path'>) {
  const match = /\/_delta_log\/(\d{20})\.(json|checkpoint\.parquet)$/.exec(path)
  return match ? { version: Number(match[1]), kind: match[2] === 'json' ? 'commit' : 'checkpoint' } : undefined
}

/** Whether a name is one that a publisher uses: that of a data file, or of a file in transfer. */
export function isOwnFile(path: string): boolean {
  return /(?:^|\/)(?:\.tmp-[^/]+|[0-9a-f]{8}-\d{10}-[^/]+\.parquet)$/.test(path)
}

/** Converts an added file of a table to its path at the destination, size and digest. */
export function publishedFile(table: string, { path, size, tags }: Add): StampedFile {
  return { path: `${table}/${path}`, bytes: size, sha256: tags['sha256'] ?? '' }
}

/** Dependencies of reading and writing logs: a destination, and an engine with a place for temporary files. */
export interface Logs {
  readonly to: Destination
  readonly engine: Engine
  /** A local path for a file of this name. */
  readonly local: (name: string) => string
}

/** Reads the current state of a table; a log with a gap or a torn commit is refused. */
export async function readTable(logs: Logs, table: string): Promise<TableState> {
  const entries = (await logs.to.list(logFolder(table))).flatMap((file) => logEntry(file) ?? [])
  const newest = (kind: string): number =>
    entries.reduce((most, entry) => (entry.kind === kind ? Math.max(most, entry.version) : most), -1)
  const checkpoint = newest('checkpoint')
  const last = newest('commit')
  let state = checkpoint < 0 ? noTable : await fromCheckpoint(logs, table, checkpoint)
  for (let version = checkpoint + 1; version <= last; version++)
    state = applied(state, version, await readCommit(logs.to, table, version))
  return state
}

async function fromCheckpoint({ to, engine, local }: Logs, table: string, version: number): Promise<TableState> {
  const path = checkpointFile(table, version)
  const file = local(`${table}-read.checkpoint.parquet`)
  if (!(await to.get(path, file))) throw damaged(to, path, 'no such file')
  const actions = await readCheckpoint(engine, file).catch((cause: unknown) => {
    requireFileError(cause, `reading ${to.uri}/${path}`)
    throw damaged(to, path, 'something else than a checkpoint', cause)
  })
  return { ...applied(noTable, version, actions), checkpoint: version }
}

/** Reads the actions of one commit. */
export async function readCommit(to: Destination, table: string, version: number): Promise<readonly Action[]> {
  const path = commitFile(table, version)
  const text = (await to.read(path))?.toString()
  if (text === undefined) throw damaged(to, path, 'no such file, but later ones')
  try {
    const lines = text.split('\n').filter((line) => line !== '')
    if (lines.length === 0) throw new SyntaxError('an empty file')
    return lines.map(parseAction)
  } catch (cause) {
    throw damaged(to, path, text === '' ? 'an empty file' : 'a torn one', cause)
  }
}

function damaged({ uri }: Destination, path: string, got: string, cause?: unknown): LakeError {
  return new LakeError('integrity', {
    subject: `log ${uri}/${path}`,
    expected: 'a whole commit or checkpoint of Delta',
    got,
    next: 'nothing was written; put the file back from a copy, or publish to another folder',
    cause,
  })
}

/** The configuration key that names the lake. */
export const lakeKey = 'pitlake.lake'

/** Refuses a folder that contains no table yet, but files of others. */
export async function requireFree({ uri, list }: Destination, table: string): Promise<void> {
  const strange = (await list(table)).find(({ path }) => !isOwnFile(path))
  if (!strange) return
  throw usage(`folder ${uri}/${table}`, {
    expected: 'nothing, or a table of this lake',
    got: `${strange.path}, a file of somebody else`,
    next: 'nothing was written; name another folder',
  })
}

/** Refuses a table that is not of this lake. */
export function requireOwn({ uri }: Destination, table: string, state: TableState, lake: string): void {
  if (state.version < 0) return
  const named = state.metaData?.configuration[lakeKey]
  const hasOwnFeature = state.protocol?.writerFeatures?.includes(ownFeature) === true
  if (hasOwnFeature && named === lake) return
  throw usage(`table ${uri}/${table}`, {
    expected: `one of the lake ${lake}`,
    got: hasOwnFeature && typeof named === 'string' ? `one of the lake ${named}` : 'a table of somebody else',
    next: 'nothing was written; name another folder, or the lake of these tables with --data',
  })
}

/** Number of commits between two checkpoints. */
const betweenCheckpoints = 10

/**
 * Commits the next version of a table, or none of it: `false` if another writer made that version first. A reader sees
 * it once its commit exists; a checkpoint follows if it is due.
 */
export async function commitTable(
  logs: Logs,
  table: string,
  state: TableState,
  actions: readonly Action[],
  now: number,
): Promise<TableState | false> {
  const version = state.version + 1
  if ((await logs.to.create(commitFile(table, version), linesOf(actions))) === 'exists') return false
  const nextState = applied(state, version, actions)
  if (version - nextState.checkpoint < betweenCheckpoints) return nextState
  await checkpointTable(logs, table, nextState, now)
  return { ...nextState, checkpoint: version }
}

/** Writes a checkpoint of Delta's classic form (V1): everything that a state consists of, as actions. */
async function checkpointTable({ to, engine, local }: Logs, table: string, state: TableState, now: number) {
  const actions = actionsOf(state, now)
  const lines = local(`${table}.checkpoint.jsonl`)
  const file = local(`${table}.checkpoint.parquet`)
  await writePrivate(lines, linesOf(actions))
  const typed = Object.entries(columns).map(([name, type]) => `${quote(name)}: ${quote(type)}`)
  const read = `read_json(${quotePath(lines)}, format = 'newline_delimited', columns = {${typed.join(', ')}})`
  await engine.run(`COPY (FROM ${read}) TO ${quote(file)} (FORMAT parquet, COMPRESSION zstd, PARQUET_VERSION v1)`)
  await to.put(checkpointFile(table, state.version), file)
  await to.replace(hintFile(table), JSON.stringify({ version: state.version, size: actions.length }))
}

const linesOf = (actions: readonly Action[]): string => actions.map((action) => `${JSON.stringify(action)}\n`).join('')

/** The columns of a checkpoint: all that an action may say, as Delta's protocol types it. */
const columns = {
  txn: 'STRUCT(appId VARCHAR, version BIGINT)',
  add: `STRUCT(path VARCHAR, partitionValues MAP(VARCHAR, VARCHAR), size BIGINT, modificationTime BIGINT,
    dataChange BOOLEAN, stats VARCHAR, tags MAP(VARCHAR, VARCHAR))`,
  remove: 'STRUCT(path VARCHAR, deletionTimestamp BIGINT, dataChange BOOLEAN)',
  metaData: `STRUCT(id VARCHAR, name VARCHAR, description VARCHAR,
    format STRUCT(provider VARCHAR, options MAP(VARCHAR, VARCHAR)), schemaString VARCHAR, partitionColumns VARCHAR[],
    configuration MAP(VARCHAR, VARCHAR), createdTime BIGINT)`,
  protocol: 'STRUCT(minReaderVersion INTEGER, minWriterVersion INTEGER, writerFeatures VARCHAR[])',
} as const

/** Milliseconds after which checkpoints forget files that left the table. */
const remembered = 400 * 86_400_000

/** Lists the actions in a checkpoint of this state. */
export function actionsOf(state: TableState, now: number): readonly Action[] {
  const { metaData, protocol, txns, files, removed } = state
  return [
    { protocol },
    { metaData },
    ...[...txns].map(([appId, version]) => ({ txn: { appId, version } })),
    ...[...files.values()].map((add) => ({ add })),
    ...[...removed.values()]
      .filter(({ deletionTimestamp }) => deletionTimestamp > now - remembered)
      .map((remove) => ({ remove })),
  ]
}

async function readCheckpoint(engine: Engine, file: string): Promise<readonly Action[]> {
  const names = Object.keys(columns).map((name) => `"${name}"`)
  const sql =
    `SELECT CAST(to_json({${names.map((name) => `${name}: ${name}`).join(', ')}}) AS VARCHAR) AS line FROM ` +
    fileSql(file)
  return (await engine.rows<{ line: string }>(sql)).map(({ line }) => parseAction(line))
}
