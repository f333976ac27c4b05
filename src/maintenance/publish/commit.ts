import { LakeError, usage } from '../../base/errors.ts'
import { sha256File } from '../../lake/ledger/commit.ts'
import type { StampedFile } from '../../lake/ledger/stamps.ts'
import { sizeOf } from '../../lake/store/files.ts'
import { type Destination, stopAt } from './destination.ts'
import { sha256 } from '../../lake/ledger/entry.ts'
import type { Micros } from '../../base/time.ts'
import type { Engine } from '../../lake/store/engine.ts'
import { type Action, commitTable, lakeKey, type Logs, ownProtocol, publishedFile, type TableState } from './log.ts'
import type { TableChange, Target } from './changes.ts'
import type { Mark } from './ranges.ts'
import type { PublishedTable } from './tables.ts'
import { schemaString } from './write.ts'

/**
 * Compares names and sizes of files with those at a destination, and the bytes, too, if they may pass through a `local`
 * path. A digest may be its beginning only; a file without a known digest is not read.
 */
export async function comparedAt(
  to: Destination,
  neededFiles: readonly StampedFile[],
  reading?: { readonly local: string; readonly signal: AbortSignal },
) {
  const sizes = new Map<string, number>()
  for (const folder of new Set(neededFiles.map(({ path }) => path.slice(0, path.indexOf('/')))))
    for (const { path, bytes } of await to.list(folder)) sizes.set(path, bytes)
  const missing = new Set(neededFiles.filter(({ path, bytes }) => sizes.get(path) !== bytes).map(({ path }) => path))
  const changed = new Set<string>()
  for (const file of neededFiles) {
    if (!reading || file.sha256 === '' || missing.has(file.path)) continue
    stopAt(reading.signal, `reading ${to.uri}`)
    if (!(await to.get(file.path, reading.local))) missing.add(file.path)
    else if ((await unlike(reading.local, file)) !== null) changed.add(file.path)
  }
  return {
    /** Paths of files that are missing, or have a different size. */
    missing,
    /** Paths of files with the right length but other bytes. */
    changed,
    /** Every existing path of their folders. */
    there: new Set(sizes.keys()),
  }
}

/** Compares a local file with what it should be; null if they are equal. */
export async function unlike(local: string, { bytes, sha256 }: StampedFile) {
  const size = await sizeOf(local)
  const digest = size === bytes ? await sha256File(local) : ''
  if (size === bytes && digest.startsWith(sha256)) return null
  const expected = `${bytes} bytes, SHA-256 ${sha256.slice(0, 12)}…`
  return { expected, got: size === bytes ? `SHA-256 ${digest.slice(0, 12)}…` : `${size} bytes` }
}

/** Refuses to name written files that are missing: such a destination does not keep what it acknowledges. */
async function requireThere(to: Destination, neededFiles: readonly StampedFile[]): Promise<void> {
  const { missing } = await comparedAt(to, neededFiles)
  const [first, ...others] = neededFiles.filter(({ path }) => missing.has(path))
  if (first === undefined) return
  const more = others.length === 0 ? '' : `, nor ${others.length} others`
  throw new LakeError('incomplete', {
    subject: `${to.uri}/${first.path}`,
    expected: `the ${first.bytes} bytes that it took`,
    got: `a list without them${more}`,
    next: 'no reader sees them; check that storage, then run the same command again',
  })
}

/** The version of the lake that is being published. */
export interface LakeVersion extends Mark {
  readonly lake: string
  readonly at: Micros
  /** SHA-256 of its journal entry, hex. */
  readonly digest: string
  readonly program: string
  /** Milliseconds since 1970. */
  readonly now: () => number
}

/*
 * Each commit of a table says which lake version it tells of, by the transactions of three applications: Delta keeps
 * the newest of each, also in checkpoints.
 */
const versionId = 'pitlake.version'
const instantId = 'pitlake.committed_at'
const digestId = 'pitlake.digest'

/** Returns the lake version that a table records; undefined if it records none. */
export function lastMark({ txns }: TableState): Mark | undefined {
  const version = txns.get(versionId)
  const at = txns.get(instantId)
  return version === undefined || at === undefined ? undefined : { version, at }
}

/** Converts a digest to its first 48 bits: a transaction's number has no room for more. */
const shortDigest = (digest: string): number => Number.parseInt(digest.slice(0, 12), 16)

/**
 * Refuses tables that are ahead of the lake, or that were published from a different course of its history, such as a
 * lake restored from a backup. Returns the newest version in which rows may have changed without a new instant: what
 * was published before it is to be rewritten.
 */
export async function requireFit(
  engine: Engine,
  { uri }: Destination,
  states: ReadonlyMap<string, TableState>,
  at: LakeVersion,
): Promise<number> {
  const rows = await engine.rows<{ version: bigint; digest: string; job: string }>(
    'SELECT version, digest, job FROM versions',
  )
  const digests = new Map(rows.map(({ version, digest }) => [Number(version), shortDigest(digest)]))
  for (const [name, state] of states) {
    const last = lastMark(state)
    if (!last || digests.get(last.version) === state.txns.get(digestId)) continue
    throw usage(`table ${uri}/${name}`, {
      expected: `a version of this lake, which is at ${at.version}`,
      got:
        `version ${last.version} ` +
        (last.version > at.version ? 'of a lake that is ahead of it' : 'of another course of its history'),
      next: 'nothing was written; publish to another folder, or from the lake that these tables are of',
    })
  }
  return rows.reduce((most, { version, job }) => (mending.has(job) ? Math.max(most, Number(version)) : most), 0)
}

/** Jobs whose commits may change existing rows. */
const mending: ReadonlySet<string> = new Set(['doctor', 'adopt'])

/** A change that was committed. */
export interface CommittedChange {
  /** The table afterwards. */
  readonly state: TableState
  readonly change: TableChange
}

/** Commits a change whose files are in place. If another writer commits first, they are removed again. */
export async function commitChange(
  logs: Logs,
  {
    table: { name },
    columns,
    state,
  }: Pick<Target, 'columns' | 'state'> & { readonly table: Pick<PublishedTable, 'name'> },
  change: TableChange,
  at: LakeVersion,
): Promise<CommittedChange> {
  await requireThere(
    logs.to,
    change.add.map((add) => publishedFile(name, add)),
  )
  const now = at.now()
  const schema = schemaString(columns)
  const isNew = state.metaData?.schemaString !== schema
  const actions: Action[] = [
    {
      commitInfo: {
        timestamp: now,
        operation: 'WRITE',
        operationParameters: { mode: 'Append' },
        isBlindAppend: false,
        engineInfo: at.program,
        pitlake: { lake: at.lake, version: at.version },
      },
    },
    ...(state.version < 0 ? [{ protocol: ownProtocol }] : []),
    ...(isNew ? [{ metaData: metaDataOf(name, schema, state, at, now) }] : []),
    { txn: { appId: versionId, version: at.version } },
    { txn: { appId: instantId, version: at.at } },
    { txn: { appId: digestId, version: shortDigest(at.digest) } },
    ...change.leave.map(({ path }) => ({ remove: { path, deletionTimestamp: now, dataChange: true } })),
    ...change.add.map((add) => ({ add })),
  ]
  const committed = await commitTable(logs, name, state, actions, now)
  if (committed) return { state: committed, change }
  for (const { path } of change.add) await logs.to.remove(`${name}/${path}`)
  throw new LakeError('busy', {
    subject: `table ${logs.to.uri}/${name}`,
    got: `version ${state.version + 1} of somebody who publishes there, too`,
    next: 'wait until that has ended, then run the same command again',
  })
}

function metaDataOf(name: string, schema: string, { metaData }: TableState, { lake }: LakeVersion, now: number) {
  return {
    id: metaData?.id ?? uuidOf(`${lake} ${name}`),
    name,
    format: { provider: 'parquet', options: {} },
    schemaString: schema,
    partitionColumns: [],
    createdTime: metaData?.createdTime ?? now,
    configuration: { [lakeKey]: lake },
  }
}

/** Derives a UUID from a text; equal texts have equal UUIDs. */
function uuidOf(text: string): string {
  const hex = sha256(text)
  return [hex.slice(0, 8), hex.slice(8, 12), `4${hex.slice(13, 16)}`, `8${hex.slice(17, 20)}`, hex.slice(20, 32)].join(
    '-',
  )
}
