import { formatInstant } from '../../time.ts'
import { hashText } from '../world/noise.ts'
import { invalidCursor, invalidParameter, readLimit, readQuery } from '../refusal.ts'
import { type RegistryView, recordOf } from './state.ts'
import { type AuditRow, type EntityType, type Row, createdSeq, lastRow } from './store.ts'

/** What a feed cursor stands for; `pause` marks one that followed a page without events. */
interface FeedPosition {
  readonly seed: number
  readonly epoch: number
  readonly seq: number
  readonly pause: boolean
}

/** Departures of the feed that the document allows. */
export interface FeedFaults {
  readonly emptyPages?: boolean
  readonly repeatedEvents?: boolean
  readonly nullCursorAtTail?: boolean
}

/** What a page of the feed needs to know beside the registry itself. */
interface FeedSettings extends FeedFaults {
  readonly seed: number
  readonly epoch: number
  readonly embed: boolean
  /** Whether the events of an entity are left out. */
  readonly loses: (type: EntityType, id: string) => boolean
}

/** How many entries of the log a feed that repeats itself goes back. */
const repeatedRows = 4

/** The opaque text of a position. */
export function writeCursor({ seed, epoch, seq, pause }: FeedPosition): string {
  const body = `${epoch}.${seq}.${pause ? 1 : 0}`
  return Buffer.from(`${body}.${sign(seed, body)}`).toString('base64url')
}

/** The sequence number and the pause of a cursor of this epoch that is not beyond the head. */
function readCursor(text: string, settings: FeedSettings, head: number): FeedPosition {
  const plain = Buffer.from(text, 'base64url').toString()
  const match = /^((\d+)\.(\d+)\.([01]))\.([0-9a-z]+)$/.exec(plain)
  const [, body = '', epoch, seq, pause, signature] = match ?? []
  if (!match || signature !== sign(settings.seed, body)) throw invalidCursor('malformed cursor')
  if (Number(epoch) !== settings.epoch) throw invalidCursor('the feed has started a new epoch: take a new snapshot')
  if (Number(seq) > head) throw invalidCursor('cursor beyond the head of the feed')
  return { seed: settings.seed, epoch: settings.epoch, seq: Number(seq), pause: pause === '1' }
}

/**
 * The events after the cursor `since`. `limit` counts entries of the log; an entity that several of them touch
 * comes once per page, always with its current state, ordered by the last of them.
 */
export function feedPage(view: RegistryView, query: URLSearchParams, settings: FeedSettings) {
  const given = readQuery(query, ['since', 'limit'])
  const limit = readLimit(given)
  const text = given.get('since')
  if (text === undefined) throw invalidParameter('since is required')
  const { seq: since, pause } = readCursor(text, settings, view.seq)
  const cursor = (seq: number, paused: boolean): string =>
    writeCursor({ seed: settings.seed, epoch: settings.epoch, seq, pause: paused })
  if (settings.emptyPages && !pause && since < view.seq) {
    return { events: [], next_cursor: cursor(since, true), has_more: true }
  }
  const until = Math.min(since + limit, view.seq)
  const first = settings.repeatedEvents ? Math.max(0, since - repeatedRows) : since
  const all = eventsOf(view, view.store.audit.slice(first, until), settings.embed, (seq) => cursor(seq, false))
  const events = all.filter(({ entity_type, entity_id }) => !settings.loses(entity_type, entity_id))
  const last = events.at(-1)
  if (settings.repeatedEvents && last) events.push(last)
  const more = until < view.seq
  return { events, next_cursor: !more && settings.nullCursorAtTail ? null : cursor(until, false), has_more: more }
}

function eventsOf(view: RegistryView, rows: readonly AuditRow[], embed: boolean, cursor: (seq: number) => string) {
  const events = new Map<string, ReturnType<typeof eventOf>>()
  for (const row of rows) {
    for (const [type, id] of row.touched) {
      const key = `${type}/${id}`
      events.delete(key)
      events.set(key, eventOf(view, type, id, rows[0]?.seq ?? 0, embed, { cursor: cursor(row.seq), at: row.at }))
    }
  }
  return [...events.values()]
}

/** One event: the entity's current state, or that it is gone. */
function eventOf(
  view: RegistryView,
  type: EntityType,
  id: string,
  firstSeq: number,
  embed: boolean,
  place: { cursor: string; at: number },
) {
  const record = recordOf(view, type, id, embed)
  const isNew = (createdSeq(view.store, type, id) ?? 0) >= firstSeq
  return {
    entity_type: type,
    entity_id: id,
    op: record ? (isNew ? 'created' : 'updated') : 'deleted',
    record: record ?? lastKnown(view, type, id),
    cursor: place.cursor,
    at: formatInstant(place.at),
  }
}

/** The top-level fields that a removed record last had; for one in two the registry has forgotten them. */
function lastKnown(view: RegistryView, type: EntityType, id: string): Row | null {
  const row = lastRow(view.store, type, id)
  if (!row || hashText(id) % 2 === 0) return null
  return Object.fromEntries(Object.entries(row).filter(([, value]) => !Array.isArray(value)))
}

function sign(seed: number, body: string): string {
  return hashText(`feed|${seed}|${body}`).toString(36)
}
