import type { Resource } from '../catalog/catalogue.ts'
import { changesAsk, type Filters, headAsk, listAsk, snapshotAsk } from './api.ts'
import {
  type FeedEvent,
  type ListPage,
  readArrays,
  readHead,
  readList,
  readPage,
  readSnapshot,
  type Resources,
  type Snapshot,
} from './bodies.ts'
import type { Value } from './json.ts'
import { askRegistry, type Got, type RawBody, type RegistryAsking, stop, type Stopped } from './asking.ts'

/** The whole registry, from a snapshot or put together from the lists. */
export interface Whole extends Snapshot {
  readonly kind: 'whole'
  readonly source: 'snapshot' | 'lists'
  readonly raws: readonly RawBody[]
  /** What the provider said when it refused the snapshot. */
  readonly limited: string | null
}

/** Asks for a snapshot; where its own limit refuses it, for the head of the feed first and then for every list. */
export async function readWhole(
  asking: RegistryAsking,
  resources: Resources,
  pageLimit: number,
): Promise<Whole | Stopped> {
  const got = await askRegistry(asking, snapshotAsk, (bytes) => readSnapshot(bytes, resources))
  if (got.kind === 'stopped') return got
  if (got.kind === 'snapshot_limit') return await readLists(asking, resources, pageLimit, got.words)
  if (got.kind !== 'read') return stop('failed', got.words)
  return { kind: 'whole', source: 'snapshot', raws: [got.raw], limited: null, ...got.value }
}

/** All lists together are held in memory. */
const mostListBytes = 1_000_000_000

async function readLists(
  asking: RegistryAsking,
  resources: Resources,
  pageLimit: number,
  limited: string,
): Promise<Whole | Stopped> {
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

/** One list, whole or filtered, and in what portions it is asked for. */
interface ListWanted {
  readonly resource: Resource
  readonly filters: Filters
  readonly pageLimit: number
}

/** All pages of a list, together. */
interface ListRead {
  readonly kind: 'pages'
  readonly records: Value[]
  readonly raws: RawBody[]
  readonly as_of: string | null
  readonly bytes: number
}

/** How much and until when a list may be read; by itself as much as a whole registry may be. */
interface Room {
  readonly bytes: number
  readonly until: number
}

/** The room for one list. */
export function roomOf(asking: Pick<RegistryAsking, 'now'>): Room {
  return { bytes: mostListBytes, until: asking.now() + mostFeedMs }
}

/** Asks for one page of a list after another; `first` is one that was read before. */
export async function readPages(
  asking: RegistryAsking,
  { resource, filters, pageLimit }: ListWanted,
  room: Room,
  first: Extract<Got<ListPage>, { kind: 'read' }> | null = null,
): Promise<ListRead | Stopped> {
  const records: Value[] = []
  const raws: RawBody[] = []
  const begun = new Set<string>()
  let [last, idle] = ['', 0]
  let cursor: string | null = null
  let as_of: string | null = null
  let bytes = 0
  for (let known = first; ; known = null) {
    const ask = listAsk(resource.path, cursor, pageLimit, filters)
    const got: Got<ListPage> = known ?? (await askRegistry(asking, ask, (body) => readList(body, resource)))
    if (got.kind === 'stopped') return got
    if (got.kind !== 'read') return stop('failed', `${resource.path}: ${got.words}`)
    raws.push(got.raw)
    bytes += got.bytes
    for (const record of got.value.records) records.push(record)
    as_of = got.value.as_of ?? as_of
    const next: string | null = got.value.cursor
    // Cursors are opaque: whether a page came before is seen by what it begins with.
    const head = JSON.stringify(got.value.records[0] ?? null)
    idle = got.value.records.length === 0 ? idle + 1 : 0
    if (next === null || !got.value.hasMore || (idle === 0 && head === last))
      return { kind: 'pages', records, raws, as_of, bytes }
    if ((idle === 0 && begun.has(head)) || idle >= mostIdlePages)
      return stop('failed', `${resource.path}: pages without an end`)
    if (bytes > room.bytes || asking.now() > room.until) return stop('failed', `${resource.path}: too much for one run`)
    if (idle === 0) last = head
    begun.add(head)
    cursor = next
  }
}

/** How far a reading of the feed came. */
export interface FeedRead {
  /** Where to go on; the one begun with where the feed had nothing. */
  readonly cursor: string
  readonly pages: number
  readonly events: number
  readonly raws: readonly RawBody[]
  readonly as_of: string | null
  /** Why it ended before the tail: the pages up to there count. */
  readonly stopped: Stopped | null
  /** The cursor belongs to another epoch of the feed. */
  readonly invalid: boolean
}

/** A feed that brings nothing new for so many pages goes round in circles, whatever its cursors say. */
const mostIdlePages = 1_000
/** So much of a feed is read at once; what came until then is kept, and the next sync goes on from there. */
const mostFeedMs = 6 * 3_600_000
const mostFeedBytes = 10_000_000_000

/**
 * Reads the feed from a cursor until it says that there is no more; events are handed on in their order, and whoever
 * takes one says whether it was news.
 */
export async function readFeed(
  asking: RegistryAsking,
  resources: Resources,
  since: string,
  pageLimit: number,
  onEvent: (event: FeedEvent) => boolean,
): Promise<FeedRead> {
  const raws: RawBody[] = []
  const until = asking.now() + mostFeedMs
  let cursor = since
  let limit: number | null = pageLimit
  let as_of: string | null = null
  let events = 0
  let bytes = 0
  let idle = 0
  const ended = (by: Stopped | null, invalid = false): FeedRead => {
    return { cursor, pages: raws.length, events, raws, as_of, stopped: by, invalid }
  }
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
