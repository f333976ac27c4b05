import { changesAsk, headAsk, listAsk, snapshotAsk } from '../fetch/registry-api.ts'
import {
  type FeedEvent,
  type ListPage,
  readGathered,
  readHead,
  readList,
  readPage,
  readSnapshot,
  type Resources,
  type Snapshot,
} from '../registry/bodies.ts'
import type { Value } from '../registry/json.ts'
import { askRegistry, type Got, type RawBody, type RegistryAsking, type Stopped } from './registry-asking.ts'

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
  if (got.kind !== 'read') return failed(got.words)
  return { kind: 'whole', source: 'snapshot', raws: [got.raw], limited: null, ...got.value }
}

function failed(words: string): Stopped {
  return { kind: 'stopped', by: 'failed', until: null, words }
}

/** Pages of one list beyond which something goes round in circles. */
const mostPages = 20_000

async function readLists(
  asking: RegistryAsking,
  resources: Resources,
  pageLimit: number,
  limited: string,
): Promise<Whole | Stopped> {
  const head = await askRegistry(asking, headAsk, readHead)
  if (head.kind === 'stopped') return head
  if (head.kind !== 'read') return failed(head.words)
  const arrays = new Map<string, Value[]>()
  const raws: RawBody[] = []
  let as_of: string | null = null
  for (const resource of resources.values()) {
    const records: Value[] = []
    let cursor: string | null = null
    for (let page = 0; ; page++) {
      const ask = listAsk(resource.path, cursor, pageLimit)
      const got: Got<ListPage> = await askRegistry(asking, ask, (bytes) => readList(bytes, resource))
      if (got.kind === 'stopped') return got
      if (got.kind !== 'read') return failed(`${resource.path}: ${got.words}`)
      raws.push(got.raw)
      for (const record of got.value.records) records.push(record)
      as_of = got.value.as_of ?? as_of
      const next: string | null = got.value.cursor
      if (next === null || next === cursor || !got.value.hasMore) break
      if (page >= mostPages) return failed(`${resource.path}: more than ${mostPages} pages`)
      cursor = next
    }
    arrays.set(resource.name, records)
  }
  const gathered = readGathered(arrays, resources)
  if (!gathered.ok) return { kind: 'stopped', by: 'undecodable', until: null, words: gathered.reason }
  return { kind: 'whole', source: 'lists', raws, limited, as_of, cursor: head.value, ...gathered.value }
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

const mostFeedPages = 1_000_000
const mostIdlePages = 10_000

/** Reads the feed from a cursor until it says that there is no more; events are handed on in their order. */
export async function readFeed(
  asking: RegistryAsking,
  resources: Resources,
  since: string,
  pageLimit: number,
  onEvent: (event: FeedEvent) => void,
): Promise<FeedRead> {
  const raws: RawBody[] = []
  let cursor = since
  let limit: number | null = pageLimit
  let as_of: string | null = null
  let events = 0
  let idle = 0
  const ended = (stopped: Stopped | null, invalid = false): FeedRead => ({
    cursor,
    pages: raws.length,
    events,
    raws,
    as_of,
    stopped,
    invalid,
  })
  for (let page = 0; page < mostFeedPages; page++) {
    const got = await askRegistry(asking, changesAsk(cursor, limit), (bytes) => readPage(bytes, resources))
    if (got.kind === 'stopped') return ended(got)
    if (got.kind === 'invalid_cursor') return ended(null, true)
    if (got.kind === 'refused' && limit !== null && got.parameter !== 'since') {
      limit = null
      continue
    }
    if (got.kind !== 'read') return ended(failed(`/changes: ${got.words}`))
    const { value } = got
    raws.push(got.raw)
    for (const event of value.events) onEvent(event)
    events += value.events.length
    as_of = value.as_of ?? as_of
    idle = value.cursor === cursor && value.events.length === 0 ? idle + 1 : 0
    cursor = value.cursor ?? cursor
    if (!value.hasMore) return ended(null)
    if (idle >= mostIdlePages) break
  }
  return ended(failed('/changes: has_more without an end'))
}
