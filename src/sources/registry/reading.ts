import type { Resource } from '../../catalog/catalogue.ts'
import type { Connection } from '../http/connection.ts'
import type { RequestRow } from '../../lake/ledger/entry.ts'
import { describeOutcome, type Outcome, type QueryParameter, requestIdWords } from '../http/outcome.ts'
import { readBytes } from '../../lake/store/files.ts'
import {
  type BodyRead,
  readArrays,
  readHead,
  readList,
  readPage,
  readSnapshot,
  type RegistryChange,
  type Resources,
  type Snapshot,
  type RegistryPage,
} from './bodies.ts'
import type { Value } from './json.ts'

/** The whole registry, from a snapshot or put together from the lists. */
export interface WholeRegistry extends Snapshot {
  readonly kind: 'whole'
  readonly source: 'snapshot' | 'lists'
  /** The bodies that it was read from. */
  readonly raws: readonly RawBody[]
  /** The provider's words if it refused the snapshot; null if it did not. */
  readonly limited: string | null
}

/** Requests a snapshot; if its own limit refuses it, requests the head of the feed and then every list. */
export async function readWhole(
  asking: RegistryAsking,
  resources: Resources,
  pageLimit: number,
): Promise<WholeRegistry | Stopped> {
  const got = await askRegistry(asking, snapshotAsk, (bytes) => readSnapshot(bytes, resources))
  if (got.kind === 'stopped') return got
  if (got.kind === 'snapshot_limit') return await readLists(asking, resources, pageLimit, got.words)
  if (got.kind !== 'read') return stop('failed', got.words)
  return { kind: 'whole', source: 'snapshot', raws: [got.raw], limited: null, ...got.value }
}

/** Maximum bytes of all lists together, which are in memory at once. */
const mostListBytes = 1_000_000_000

async function readLists(
  asking: RegistryAsking,
  resources: Resources,
  pageLimit: number,
  limited: string,
): Promise<WholeRegistry | Stopped> {
  const head = await askRegistry(asking, headAsk, (body) => readHead(body, resources))
  if (head.kind === 'stopped') return head
  if (head.kind !== 'read') return stop('failed', head.words)
  const arrays = new Map<string, Value[]>()
  const raws: RawBody[] = []
  const until = asking.now() + mostFeedMs
  let as_of: string | null = null
  let bytes = 0
  for (const resource of resources.values()) {
    const room = { bytes: mostListBytes - bytes, until }
    const pages = await readPages(asking, { resource, filters: {}, pageLimit }, room)
    if (pages.kind === 'stopped') return pages
    raws.push(...pages.raws)
    bytes += pages.bytes
    as_of = pages.as_of ?? as_of
    arrays.set(resource.name, pages.records)
  }
  const united = readArrays(arrays, resources)
  if (!united.ok) return stop('undecodable', united.reason)
  return { kind: 'whole', source: 'lists', raws, limited, as_of, cursor: head.value, ...united.value }
}

/** One list, whole or filtered, with the size of its pages. */
interface ListWanted {
  readonly resource: Resource
  readonly filters: Filters
  readonly pageLimit: number
}

/** The limits on reading a list. */
export interface ReadingLimit {
  readonly bytes: number
  /** Time at which reading ends, milliseconds since 1970. */
  readonly until: number
}

/** Returns the limits on a single list, which equal those on a whole registry. */
export function roomOf(asking: Pick<RegistryAsking, 'now'>): ReadingLimit {
  return { bytes: mostListBytes, until: asking.now() + mostFeedMs }
}

/** A list that was read to its end. */
export interface ListReading {
  readonly kind: 'pages'
  readonly records: Value[]
  /** The bodies that it was read from, one a page. */
  readonly raws: RawBody[]
  /** The timestamp that the last page to have one states; null if none does. */
  readonly as_of: string | null
  /** Bytes of the bodies. */
  readonly bytes: number
}

/** Requests one page of a list after another; `first` is one that was read before. */
export async function readPages(
  asking: RegistryAsking,
  { resource, filters, pageLimit }: ListWanted,
  room: ReadingLimit,
  first: ReadAnswer<RegistryPage> | null = null,
): Promise<ListReading | Stopped> {
  const records: Value[] = []
  const raws: RawBody[] = []
  const beganWith = new Set<string>()
  let last = ''
  let idle = 0
  let cursor: string | null = null
  let as_of: string | null = null
  let bytes = 0
  for (let firstPage = first; ; firstPage = null) {
    const ask = listAsk(resource.path, cursor, pageLimit, filters)
    const got: Got<RegistryPage> = firstPage ?? (await askRegistry(asking, ask, (body) => readList(body, resource)))
    if (got.kind === 'stopped') return got
    if (got.kind !== 'read') return stop('failed', `${resource.path}: ${got.words}`)
    raws.push(got.raw)
    bytes += got.bytes
    for (const record of got.value.records) records.push(record)
    as_of = got.value.as_of ?? as_of
    const next: string | null = got.value.cursor
    // Cursors are opaque: a repeated page is recognised by its first record.
    const head = JSON.stringify(got.value.records[0] ?? null)
    idle = got.value.records.length === 0 ? idle + 1 : 0
    if (next === null || !got.value.hasMore || (idle === 0 && head === last))
      return { kind: 'pages' as const, records, raws, as_of, bytes }
    if ((idle === 0 && beganWith.has(head)) || idle >= mostIdlePages)
      return stop('failed', `${resource.path}: pages without an end`)
    if (bytes > room.bytes || asking.now() > room.until) return stop('failed', `${resource.path}: too much for one run`)
    if (idle === 0) last = head
    beganWith.add(head)
    cursor = next
  }
}

/** Number of pages without anything new after which a feed counts as circular, whatever its cursors are. */
const mostIdlePages = 1_000
/**
 * Maximum time, and bytes, of one reading of the feed; the answers until then are stored, and the next sync continues
 * from there.
 */
const mostFeedMs = 6 * 3_600_000
const mostFeedBytes = 10_000_000_000

/** A reading of the feed, to its tail or to an earlier end. */
export interface FeedReading {
  /** Cursor to continue from; the initial one if the feed had nothing. */
  readonly cursor: string
  readonly pages: number
  readonly events: number
  /** The bodies that it was read from, one a page. */
  readonly raws: readonly RawBody[]
  /** The timestamp that the last page to have one states; null if none does. */
  readonly as_of: string | null
  /** Reason for ending before the tail, null if it did not; the pages up to that point count. */
  readonly stopped: Stopped | null
  /** Whether the cursor belongs to a different epoch of the feed. */
  readonly invalid: boolean
}

/**
 * Reads the feed from a cursor to its end; passes events on in their order to `onEvent`, which returns whether one was
 * news.
 */
export async function readFeed(
  asking: RegistryAsking,
  resources: Resources,
  since: string,
  pageLimit: number,
  onEvent: (event: RegistryChange) => boolean,
): Promise<FeedReading> {
  const raws: RawBody[] = []
  const until = asking.now() + mostFeedMs
  let cursor = since
  let limit: number | null = pageLimit
  let as_of: string | null = null
  let events = 0
  let bytes = 0
  let idle = 0
  const ended = (stopped: Stopped | null, invalid = false) => ({
    cursor,
    pages: raws.length,
    events,
    raws,
    as_of,
    stopped,
    invalid,
  })
  while (idle < mostIdlePages) {
    if (bytes > mostFeedBytes || asking.now() > until)
      return ended(stop('budget', 'the feed is longer than one run reads'))
    const got = await askRegistry(asking, changesAsk(cursor, limit), (body) => readPage(body, resources))
    if (got.kind === 'stopped') return ended(got)
    if (got.kind === 'invalid_cursor') return ended(null, true)
    if (got.kind === 'refused' && limit !== null && got.parameter !== 'since') {
      limit = null
      continue
    }
    if (got.kind !== 'read') return ended(stop('failed', `/changes: ${got.words}`))
    const { value } = got
    raws.push(got.raw)
    const news = value.events.filter((event) => onEvent(event)).length
    events += value.events.length
    bytes += got.bytes
    as_of = value.as_of ?? as_of
    idle = news === 0 ? idle + 1 : 0
    cursor = value.cursor ?? cursor
    if (!value.hasMore) return ended(null)
  }
  return ended(stop('failed', `/changes: has_more without an end, and nothing new on ${mostIdlePages} pages`))
}

/** Reason for ending a reading of the registry early. */
export type RegistryStop =
  | 'signal'
  | 'max_requests'
  | 'budget'
  | 'quota'
  | 'unauthorised'
  | 'unreachable'
  | 'failed'
  | 'undecodable'

/** The early end of reading the registry; data that were not read by then are not committed. */
export interface Stopped {
  readonly kind: 'stopped'
  /** `failed` if an answer is of no use. */
  readonly by: RegistryStop
  /** Time at which a spent quota is renewed, Unix milliseconds; null for any other reason. */
  readonly until: number | null
  /** Reason in words. */
  readonly words: string
}

/** Ends reading the registry early. */
export function stop(by: RegistryStop, words: string, until: number | null = null): Stopped {
  return { kind: 'stopped' as const, by, until, words }
}

/** A body as received, in the spool. */
export interface RawBody {
  readonly file: string
  readonly request: string
  readonly etag: string | null
  /** Path and query. */
  readonly address: string
  /** A 304: the body is the one that the lake has already. */
  readonly isKnown: boolean
}

/** A body of the registry that was read. */
interface ReadAnswer<T> {
  readonly kind: 'read'
  readonly value: T
  readonly raw: RawBody
  /** Size of the body. */
  readonly bytes: number
}

/** The outcome of one request to the registry. */
type Got<T> =
  | ReadAnswer<T>
  | { readonly kind: 'invalid_cursor'; readonly words: string }
  /** Nothing is at that address. */
  | { readonly kind: 'gone'; readonly words: string }
  /** A 304 for a body that is not stored. */
  | { readonly kind: 'unchanged'; readonly etag: string | null; readonly words: string }
  | { readonly kind: 'refused'; readonly parameter: string | null; readonly words: string }
  | { readonly kind: 'snapshot_limit'; readonly waitMs: number | null; readonly words: string }
  | Stopped

/** The dependencies of a run's requests to the registry. */
export interface RegistryAsking {
  readonly connection: Pick<Connection, 'ask' | 'base'> & { readonly spool: Pick<Connection['spool'], 'file'> }
  /** Requests that no commit has named yet. */
  readonly requests: RequestRow[]
  /** Returns a name that no other request of the run has. */
  readonly nextId: () => string
  /** Returns the entity tag of an address that was answered before and, if it is stored, its body as received. */
  readonly storedAnswer: (
    address: string,
  ) => { readonly etag: string; readonly read?: () => Promise<Uint8Array> } | undefined
  readonly onOutcome: (ask: RegistryAsk, outcome: Outcome) => void
  /** Moves a body that cannot be read to the quarantine. */
  readonly quarantine: (raw: RawBody, request: RequestRow, reason: string) => Promise<void>
  /** Returns the current time in milliseconds since 1970. */
  readonly now: () => number
}

/**
 * Sends a request and reads its body, and repeats it if the body cannot be read; the second such body goes to the
 * quarantine.
 */
export async function askRegistry<T>(
  asking: RegistryAsking,
  ask: RegistryAsk,
  read: (bytes: Uint8Array) => BodyRead<T>,
): Promise<Got<T>> {
  const { connection, requests } = asking
  const url = registryUrl(connection.base, ask)
  const address = `${ask.path}?${new URLSearchParams(ask.query).toString()}`
  for (let again = false; ; again = true) {
    const id = asking.nextId()
    const file = connection.spool.file(`${id}.json`)
    // A body that could not be read is requested again without its entity tag.
    const stored = again ? undefined : asking.storedAnswer(address)
    const { outcome, row } = await connection.ask({ id, url, file, etag: stored?.etag, parameters: registryParameters })
    asking.onOutcome(ask, outcome)
    requests.push(row)
    const isUnchanged = outcome.kind === 'not_modified' && stored !== undefined
    if (isUnchanged && !stored.read) return { kind: 'unchanged', etag: outcome.etag, words: describeOutcome(outcome) }
    if (outcome.kind !== 'body' && !isUnchanged) return verdict(outcome)
    const raw: RawBody = { file, request: row.id, etag: outcome.etag, address, isKnown: isUnchanged }
    const bytes = isUnchanged && stored.read ? await stored.read() : await readBytes(file)
    const decoded = read(bytes)
    if (decoded.ok) return { kind: 'read', value: decoded.value, raw, bytes: bytes.length }
    requests[requests.length - 1] = { ...row, outcome: 'poison', detail: `${decoded.reason}${requestIdWords(outcome)}` }
    if (!again) continue
    await asking.quarantine(raw, row, decoded.reason)
    return stop('undecodable', `${ask.path}: ${decoded.reason} (the body is in quarantine/${row.id}.body)`)
  }
}

function verdict(outcome: Exclude<Outcome, { kind: 'body' }>): Got<never> {
  const end = (by: RegistryStop, until?: number): Stopped => stop(by, describeOutcome(outcome), until)
  switch (outcome.kind) {
    case 'refused': {
      const aboutCursor = outcome.code === 'invalid_cursor' || (outcome.code === null && /cursor/i.test(outcome.words))
      if (aboutCursor) return { kind: 'invalid_cursor', words: outcome.words }
      return { kind: 'refused', parameter: outcome.parameter, words: outcome.words }
    }
    case 'limited':
      if (outcome.code !== 'snapshot_limit') return end('failed')
      return { kind: 'snapshot_limit', waitMs: outcome.waitMs, words: outcome.words }
    case 'unauthorised':
    case 'forbidden':
      return end('unauthorised')
    case 'parked':
      return end('quota', outcome.until)
    case 'stopped':
      return end(outcome.by)
    case 'again':
      return end(outcome.status === null ? 'unreachable' : 'failed')
    case 'gone':
      return { kind: 'gone', words: describeOutcome(outcome) }
    case 'no_content':
    case 'not_modified':
    case 'too_large':
    case 'unexpected':
      return end('failed')
    default:
      return outcome satisfies never
  }
}

/** One request to the registry: a path below the base that ends in its version, and its query. */
export interface RegistryAsk {
  readonly path: string
  readonly query: Readonly<Record<string, string>>
}

/** The whole registry in one answer. */
export const snapshotAsk: RegistryAsk = { path: '/snapshot', query: {} }

/** The newest cursor of the change feed. */
export const headAsk: RegistryAsk = { path: '/changes/head', query: {} }

/** Builds the request for a page of the change feed after a cursor; without a limit if the provider refuses one. */
export function changesAsk(since: string, limit: number | null): RegistryAsk {
  return { path: '/changes', query: { since, ...(limit !== null && { limit: String(limit) }) } }
}

/** Builds the request for a page of a list after a cursor (null for the first page), filtered if filters are given. */
export function listAsk(path: string, cursor: string | null, limit: number, filters: Filters = {}): RegistryAsk {
  return { path, query: { ...filters, limit: String(limit), ...(cursor !== null && { cursor }) } }
}

/** Filters of a list by their names, each once: a record must fit all. */
export type Filters = Readonly<Record<string, string>>

/** Builds the request for one record by its own address. */
export function detailAsk(path: string, id: string): RegistryAsk {
  return { path: `${path}/${encodeURIComponent(id)}`, query: {} }
}

/** Returns the address of a request; it never contains the key. */
export function registryUrl(base: string, ask: RegistryAsk): string {
  const query = Object.entries(ask.query).map(([key, value]) => `${key}=${encodeURIComponent(value)}`)
  return `${base.replace(/\/+$/, '')}${ask.path}${query.length === 0 ? '' : `?${query.join('&')}`}`
}

/** The query parameters that a refusal may name. */
export const registryParameters: readonly QueryParameter[] = ['since', 'limit', 'cursor'].map((name) => ({
  name,
  key: name,
}))
