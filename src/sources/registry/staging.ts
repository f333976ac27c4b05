import type { Writable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { promisify } from 'node:util'
import { constants, createZstdCompress, zstdDecompress } from 'node:zlib'
import type { Json, Provider, RequestRow } from '../../lake/ledger/entry.ts'
import { storedPassing, storedState, liveFiles } from '../../lake/ledger/index-queries.ts'
import type { Ledger } from '../../lake/ledger/ledger.ts'
import { checkedValue } from '../../lake/ledger/index-rows.ts'
import { mapOf, oneOf, orNull, real, shape, text, type ValueCheck } from '../../base/value-checks.ts'
import { type Layers, layersShape } from './dated-tables.ts'
import type { CommitDeps, StagedFile, Ticket } from '../../lake/ledger/commit.ts'
import { listedAs, withoutPoints } from '../../lake/ledger/draft.ts'
import type { Spool } from '../../lake/ledger/spool-sweep.ts'
import { mega } from '../../base/option-kinds.ts'
import { Engine } from '../../lake/store/engine.ts'
import { readBytes, readInto, sizeOf, writeStream } from '../../lake/store/files.ts'
import { inLake, rawFile, registryFile } from '../../lake/store/layout.ts'
import { engineMemory, keptMemory } from '../../lake/store/memory.ts'
import type { Resources } from './bodies.ts'
import { tableColumns } from './columns.ts'
import type { Poll } from './history.ts'
import type { Constants, Lines } from './poll-lines.ts'
import type { RawBody } from './reading.ts'

/** Fields of a stored snapshot: its date (`YYYY-MM-DD`, UTC), and the microsecond at which it was observed. */
export const snapshotFields = { date: text, observed_at: real, as_of: orNull(text), source: oneOf('snapshot', 'lists') }
const snapshot = shape(snapshotFields)

const none: { readonly [key: string]: never } = {}

type StateReader = <T>(key: string, check: ValueCheck<T>) => T | null

/** Returns the cursor of the last commit; null if there is none. */
export const committedCursor = (ledger: Ledger): string | null => stateReader(ledger)('cursor', text)

const stateReader =
  (ledger: Ledger): StateReader =>
  (key, check) =>
    checkedOrNull(check, storedState(ledger, `registry.${key}`), key)

function checkedOrNull<T>(check: ValueCheck<T>, value: Json | undefined, key: string): T | null {
  return value === undefined || value === null ? null : checkedValue(check, value, `registry.${key}`)
}

/** A snapshot of the registry on record. */
export interface SnapshotMark {
  /** `YYYY-MM-DD`, UTC. */
  readonly date: string
  /** Microseconds. */
  readonly observed_at: number
  /** The timestamp that the provider states, as sent; null if it states none. */
  readonly as_of: string | null
  /** Source of the snapshot. */
  readonly source: 'snapshot' | 'lists'
}

/** The committed state of the registry. */
export interface RegistryState {
  /** Cursor of the feed, from the last commit or from a later poll without news; null before the first snapshot. */
  readonly cursor: string | null
  /** Counts the epochs of the feed that this lake has seen, from 1; 0 before the first snapshot. */
  readonly epoch: number
  /** The first snapshot; null before it. */
  readonly first: SnapshotMark | null
  /** The last snapshot; null before the first. */
  readonly last: SnapshotMark | null
  /** The files of the dated tables, by table. */
  readonly layers: Readonly<Record<string, Layers>>
  /** Open rows by table. */
  readonly records: Readonly<Record<string, number>>
}

/** Reads the committed state of the registry. */
export function registryState(ledger: Ledger): RegistryState {
  const read = stateReader(ledger)
  const committed = committedCursor(ledger)
  const { further } = passingFacts(ledger)
  return {
    cursor: further !== null && further.after === committed ? further.cursor : committed,
    epoch: Number(read('epoch', text) ?? 0),
    first: read('first_snapshot', snapshot),
    last: read('last_snapshot', snapshot),
    layers: read('layers', mapOf(layersShape)) ?? none,
    records: read('records', mapOf(real)) ?? none,
  }
}

/** Puts the state of the registry in the form for a commit. */
export function stateDraft({ epoch, first, last, ...rest }: Partial<RegistryState>): { [key: string]: Json } {
  const epochText = epoch === undefined ? undefined : String(epoch)
  return withRegistryKeys({ ...rest, epoch: epochText, first_snapshot: first, last_snapshot: last })
}

function withRegistryKeys(facts: Readonly<Record<string, unknown>>): { [key: string]: Json } {
  const set = Object.entries(facts).filter(([, value]) => value !== undefined)
  return Object.fromEntries(set.map(([key, value]) => [`registry.${key}`, value])) as { [key: string]: Json }
}

/** The cursor of the feed after polls without news. */
export interface FurtherCursor {
  /** The committed cursor that it follows; null if none was committed. */
  readonly after: string | null
  readonly cursor: string
}

/** The entity tag of an answer, and the raw file that contains its body, relative to the lake. */
export interface EntityTag {
  readonly etag: string
  readonly raw: string
}

/** Entity tags by path and query of their answers. */
export type EntityTags = Readonly<Record<string, EntityTag>>

/** Facts about the registry that make no version. */
export interface PassingFacts {
  /** Cursor of the feed after polls without news since a commit; null if there were none. */
  readonly further: FurtherCursor | null
  readonly tags: EntityTags
  /** The last complete poll of the feed, Unix milliseconds; null before the first. */
  readonly polled: number | null
  /** Reports of the last answers about limits, by header. */
  readonly limits: Readonly<Record<string, string>>
  /** Time until which the provider refuses snapshots, Unix milliseconds; null if it never did. */
  readonly snapshotLimit: number | null
  /** Answers of 304 so far. */
  readonly notModified: number
}

/** Reads the facts that make no version. */
export function passingFacts(ledger: Ledger): PassingFacts {
  const read: StateReader = (key, check) => checkedOrNull(check, storedPassing(ledger, `registry.${key}`)?.value, key)
  return {
    further: read('further', shape({ after: orNull(text), cursor: text })),
    tags: read('tags', mapOf(shape({ etag: text, raw: text }))) ?? none,
    polled: read('polled', real),
    limits: read('limits', mapOf(text)) ?? none,
    snapshotLimit: read('snapshot_limit', real),
    notModified: read('not_modified', real) ?? 0,
  }
}

/** Puts the facts that make no version in the form for a commit. */
export function passingDraft({ snapshotLimit, notModified, ...rest }: Partial<PassingFacts>): { [key: string]: Json } {
  return withRegistryKeys({ ...rest, snapshot_limit: snapshotLimit, not_modified: notModified })
}

/** The dependencies of committing a poll (one reading of the registry). */
export interface PollContext {
  readonly ledger: Ledger
  readonly withEngine: WithEngine
  readonly spool: Spool
  readonly resources: Resources
  readonly run: string
  readonly job: string
  readonly provider: Provider
  readonly providerMoved: boolean
  readonly rawDays: number
  readonly deps: CommitDeps
}

/** A poll that is over, ready to become a version. */
export interface FinishedPoll {
  readonly poll: Poll
  readonly lines: Lines
  readonly as_of: string | null
  readonly raws: readonly RawBody[]
  /** Cursor of the feed after the poll. */
  readonly cursor: string
  readonly epoch: number
  /** Source of a whole state, which becomes a dated snapshot; null if none was read. */
  readonly wholeSource: 'snapshot' | 'lists' | null
  readonly disagreeing: readonly string[]
  readonly requests: readonly RequestRow[]
  readonly passing: Partial<PassingFacts>
  readonly tags: EntityTags
}

/** Memory limit of a process whose engine has a quarter of a gigabyte, which is enough for records. */
const engineMemoryLimit = 480 * mega

/** Lends an engine for one piece of work and closes it. */
export type WithEngine = <T>(work: (engine: Engine) => Promise<T>) => Promise<T>

/**
 * Builds the engines of one run, one for each piece of work, because an engine keeps its memory until it is closed; a
 * new one takes a hundredth of a second. One thread takes the least memory, and records are read and written in order
 * anyway.
 */
export function enginesOf(spool: Spool): WithEngine {
  return async (work) => {
    const memoryLimit = engineMemory(1, Math.min(keptMemory(), engineMemoryLimit))
    using engine = await Engine.open(':memory:', { tempDirectory: spool.file('duckdb'), threads: 1, memoryLimit })
    return await work(engine)
  }
}

/** The files of an unfinished version, under the commit lock. */
export interface StagedVersion {
  readonly ledger: Ledger
  readonly spool: Spool
  readonly resources: Resources
  readonly lines: Lines
  readonly ticket: Ticket
  /** The day of the commit, `YYYY-MM-DD`, UTC. */
  readonly date: string
  /** Prefix of the names of its files, which never repeat. */
  readonly name: string
  /** Files that are made so far: grows. */
  readonly files: StagedFile[]
}

/** A file of a table that is made of lines. */
interface TableFile {
  readonly table: string
  /** The name of the lines. */
  readonly lines: string
  readonly id: string
  readonly date: string | null
  readonly constants: Constants
  readonly made?: Readonly<Record<string, string>>
  readonly meta: StagedFile['meta']
}

/** Writes the lines of this name as a file of the draft; null if there are none. */
export async function stageLines(
  version: Pick<StagedVersion, 'spool' | 'lines' | 'ticket' | 'resources' | 'files'>,
  engine: Engine,
  file: TableFile,
): Promise<StagedFile | null> {
  const staged = await stageTableFile(engine, version, file)
  if (staged) version.files.push(staged)
  return staged
}

/** Writes lines of any name as a file; without resources the table must have the same columns for all resources. */
export async function stageTableFile(
  engine: Engine,
  from: Pick<StagedVersion, 'spool' | 'lines' | 'ticket'> & { readonly resources?: Resources },
  { table, lines: name, id, date, constants, made: computed, meta }: TableFile,
): Promise<StagedFile | null> {
  const { spool, lines, ticket, resources } = from
  const temporary = `${table}-${id}.parquet`
  const out = spool.file(temporary)
  if (
    !(await lines.toParquet(engine, name, tableColumns(table, resources), { constants, made: computed, out, ticket }))
  )
    return null
  const place = { temporary: spool.path(temporary), path: registryFile(table, id, date), table, label: date ?? '' }
  return { ...place, ...withoutPoints, rows: lines.size(name).rows, meta }
}

/** Lists a file of the lake under this date, if it is not. */
export function relistFile(
  { ledger, files, date }: Pick<StagedVersion, 'ledger' | 'files' | 'date'>,
  table: string,
  path: string,
): void {
  if (files.some((file) => file.path === path)) return
  const listed = liveFiles(ledger, { table }).filter((file) => file.path === path)
  const [first] = listed
  if (!first || listed.some((file) => file.label === date)) return
  files.push(listedAs(first, { label: date }))
}

const unzstd = promisify(zstdDecompress)

/** Bodies of records repeat themselves within the smallest window: more effort makes them no smaller. */
const zstd = { chunkSize: 1 << 18, params: { [constants.ZSTD_c_compressionLevel]: 1 } }

/** Reads a raw file of the lake as it was received. */
export async function readRaw(root: string, path: string): Promise<Uint8Array> {
  return await unzstd(await readBytes(inLake(root, path)))
}

/**
 * Stages the bodies as received, and lists those of an unchanged registry again; returns the entity tags for the next
 * requests.
 */
export async function stageRawFiles(
  version: Pick<StagedVersion, 'ledger' | 'spool' | 'files' | 'date' | 'name'>,
  { raws, wholeSource, tags }: Pick<FinishedPoll, 'raws' | 'wholeSource' | 'tags'>,
  fresh: boolean,
): Promise<EntityTags> {
  const { ledger, files, name } = version
  const next: Record<string, EntityTags[string]> = { ...tags }
  for (const { isKnown, address } of raws) {
    if (!isKnown) continue
    const tag = tags[address]
    if (!tag) throw new RangeError(`no body of ${address} is held`)
    relistFile(version, 'raw', tag.raw)
  }
  const received = raws.filter((body) => !body.isKnown)
  if (received.length === 0) return next
  if (wholeSource === null || wholeSource === 'lists') {
    const feedBodies = received.filter(({ address }) => address.startsWith('/changes?'))
    if (fresh && feedBodies.length > 0) files.push(await stageRaw(version, 'feed', name, feedBodies))
  }
  const lastSnapshot = liveFiles(ledger, { table: 'raw' }).findLast((file) => file.meta['kind'] === 'snapshot')
  if (wholeSource === 'snapshot' && !fresh && lastSnapshot) {
    relistFile(version, 'raw', lastSnapshot.path)
    return next
  }
  const otherBodies = received.filter(({ address }) => !address.startsWith('/changes'))
  for (const [i, body] of otherBodies.entries()) {
    const fileId = wholeSource === 'snapshot' ? name : `${name}-${i}`
    const staged = await stageRaw(version, wholeSource ?? 'feed', fileId, [body])
    files.push(staged)
    if (body.etag !== null) next[body.address] = { etag: body.etag, raw: staged.path }
  }
  return next
}

/** Compresses bodies, one after the other on lines of their own, to be committed as one raw file. */
async function stageRaw(
  { spool, date }: Pick<StagedVersion, 'spool' | 'date'>,
  kind: string,
  name: string,
  bodies: readonly RawBody[],
) {
  const file = `${name}.json.zst`
  const compressor = createZstdCompress(zstd)
  const written = pipeline(compressor, writeStream(spool.file(file)))
  try {
    await Promise.race([written, writeBodies(compressor, bodies)])
    compressor.end()
    await written
  } finally {
    compressor.destroy()
  }
  const place = { temporary: spool.path(file), path: rawFile(kind, name, '.json.zst'), table: 'raw', label: date }
  return { ...place, ...withoutPoints, rows: bodies.length, meta: { kind } }
}

/** Hands the bodies on, all in the same memory: each is taken in before the next is read. */
async function writeBodies(compressor: Writable, bodies: readonly RawBody[]): Promise<void> {
  const take = async (bytes: Buffer): Promise<void> =>
    await new Promise((done, failed) => {
      compressor.write(bytes, (error) => (error ? failed(error) : done()))
    })
  let memory = Buffer.alloc(0)
  for (const [i, { file }] of bodies.entries()) {
    if (i > 0) await take(Buffer.from('\n'))
    const size = await sizeOf(file)
    if (memory.length < size) memory = Buffer.allocUnsafeSlow(size)
    await take(await readInto(file, memory.subarray(0, size)))
  }
}
