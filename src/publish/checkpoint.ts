import { writePrivate } from '../store/files.ts'
import { type Engine, quote } from '../store/engine.ts'
import { fileSql } from '../views/relations.ts'
import { type Action, parseAction, type TableState } from './actions.ts'

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

/** Files that left the table so long ago are forgotten by its checkpoints, in milliseconds. */
const remembered = 400 * 86_400_000

/** Everything that a state consists of, as actions. */
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

/** Writes actions as a checkpoint of Delta's classic form (V1) to a local file; `lines` is a file for what passes through. */
export async function writeCheckpoint(
  engine: Engine,
  actions: readonly Action[],
  lines: string,
  file: string,
): Promise<void> {
  await writePrivate(lines, actions.map((action) => `${JSON.stringify(action)}\n`).join(''))
  const typed = Object.entries(columns).map(([name, type]) => `${quote(name)}: ${quote(type)}`)
  const read = `read_json(${quote(lines)}, format = 'newline_delimited', columns = {${typed.join(', ')}})`
  await engine.run(`COPY (FROM ${read}) TO ${quote(file)} (FORMAT parquet, COMPRESSION zstd, PARQUET_VERSION v1)`)
}

/** The actions of a checkpoint that lies in a local file. */
export async function readCheckpoint(engine: Engine, file: string): Promise<readonly Action[]> {
  const names = Object.keys(columns).map((name) => `"${name}"`)
  const sql = `SELECT CAST(to_json({${names.map((name) => `${name}: ${name}`).join(', ')}}) AS VARCHAR) AS line FROM ${fileSql(file)}`
  return (await engine.rows<{ line: string }>(sql)).map(({ line }) => parseAction(line))
}
