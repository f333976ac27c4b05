import { type Fault, pick } from '../faults.ts'
import { textStream } from '../metrics-body.ts'
import { invalidCursor, invalidParameter, notFound, readLimit, readQuery } from '../refusal.ts'
import { type RegistryView, type EntityTable, recordOf, recordsOf, shownRow, tables } from './state.ts'
import { type EntityRow, firstFrom, idsOf, type LogEntry, type EntityType, createdSeq, lastRow } from './store.ts'
import { assetClasses, laterVenueType, venueTypes } from './vocabulary.ts'
import { formatInstant } from '../../time.ts'
import { hashText } from '../world/noise.ts'

/** How a filter compares a field, that of its name unless it says another: exactly, without regard to case, or as addresses do. */
interface Filter {
  readonly field?: string
  readonly compare?: 'any-case' | 'address'
  readonly values?: readonly string[]
  readonly form?: RegExp
}

const idForm = /^[a-z0-9]+(?:-[a-z0-9]+)*$/
const plainHex = /^0x[0-9a-fA-F]+$/
const status: Filter = { values: ['active', 'inactive'] }
const loose: Filter = { compare: 'any-case' }

const filters: Readonly<Record<EntityTable, Readonly<Record<string, Filter>>>> = {
  issuers: { jurisdiction: { form: /^[A-Z]{2}$/ }, status, custodian: {} },
  assets: { asset_class: { values: assetClasses.map(([name]) => name) }, ticker: loose, isin: loose },
  products: { issuer: { field: 'issuer_id' }, asset: { field: 'asset_id' }, status, symbol: loose, isin: loose },
  deployments: {
    product: { field: 'product_id' },
    chain: { field: 'chain_id' },
    status: { values: ['active', 'deprecated', 'inactive'] },
    verification_status: { values: ['verified', 'unverified'] },
    address: { compare: 'address' },
  },
  venues: { venue_type: { values: [...venueTypes, laterVenueType] } },
  derivatives: { symbol: loose },
}

/** One page of a list in id order, after the filters, without `as_of`; the deployment list holds verified rows only. */
export function listPage(
  view: RegistryView,
  table: EntityTable,
  query: URLSearchParams,
  omits: (table: EntityTable, id: string) => boolean,
) {
  const own = filters[table]
  const given = readQuery(query, ['limit', 'cursor', ...Object.keys(own)])
  const limit = readLimit(given)
  const passes = readFilters(own, given, table)
  const filtered = Object.keys(own).some((name) => given.has(name))
  const ids = idsOf(view.store, tables[table])
  const data: EntityRow[] = []
  let more = false
  for (let i = firstAfter(ids, given.get('cursor')); i < ids.length && !more; i++) {
    const id = ids[i] as string
    const row = shownRow(view, tables[table], id)
    if (!row || !passes(row) || (filtered && omits(table, id))) continue
    if (data.length === limit) more = true
    else data.push(recordOf(view, tables[table], id) as EntityRow)
  }
  const last = data.at(-1)?.['id'] as string | undefined
  return { data, next_cursor: more && last !== undefined ? last : null, has_more: more }
}

/** The record behind a detail path; derivatives have none. */
export function detail(view: RegistryView, table: EntityTable, id: string, query: URLSearchParams): EntityRow {
  readQuery(query, [])
  const record = table === 'derivatives' ? undefined : recordOf(view, tables[table], id)
  if (!record) throw notFound(`no entity with that id in ${table}`)
  return record
}

function readFilters(
  own: Readonly<Record<string, Filter>>,
  given: ReadonlyMap<string, string>,
  table: EntityTable,
): (row: EntityRow) => boolean {
  const tests = [...given].flatMap(([name, value]) => {
    const filter = own[name]
    if (!filter) return []
    const supported = (filter.values?.includes(value) ?? true) && (filter.form?.test(value) ?? true)
    if (!supported) throw invalidParameter(`unsupported value of parameter: ${name}`)
    return [matcher({ field: name, ...filter }, value)]
  })
  if (table === 'deployments') tests.push((row) => row['verification_status'] === 'verified')
  return (row) => tests.every((test) => test(row))
}

function matcher({ field, compare }: Filter & { readonly field: string }, value: string): (row: EntityRow) => boolean {
  const anyCase = compare === 'any-case' || (compare === 'address' && plainHex.test(value))
  if (!anyCase) return (row) => row[field] === value
  const wanted = value.toLowerCase()
  return (row) => typeof row[field] === 'string' && row[field].toLowerCase() === wanted
}

function firstAfter(ids: readonly string[], cursor: string | undefined): number {
  if (cursor === undefined) return 0
  if (!idForm.test(cursor)) throw invalidCursor('cursor must be the next_cursor of the previous page')
  return firstFrom(ids.length, (n) => (ids[n] as string) > cursor)
}

/** How a snapshot is laid out, and where its deployments stand. */
interface SnapshotForm {
  /** `data` or `next_cursor`: that holds all, or names the cursor. */
  readonly layout: string | undefined
  /** `array` or `products`: there alone. */
  readonly embedded: string | undefined
  readonly cursor: string
  readonly as_of: string
}

/** The body of a snapshot, written as it is read: one array a table, then the cursor and `as_of`. */
export function snapshotBody(view: RegistryView, form: SnapshotForm): ReadableStream<Uint8Array> {
  return textStream(snapshotPieces(view, form))
}

function* snapshotPieces(view: RegistryView, form: SnapshotForm): Generator<string> {
  const shown = (Object.keys(tables) as EntityTable[]).filter(
    (table) => table !== 'deployments' || form.embedded !== 'products',
  )
  yield form.layout === 'data' ? '{"data":{' : '{'
  for (const [index, table] of shown.entries()) {
    yield `${index > 0 ? ',' : ''}"${table}":[`
    let comma = ''
    for (const record of recordsOf(view, tables[table], form.embedded !== 'array')) {
      yield comma + JSON.stringify(record)
      comma = ','
    }
    yield ']'
  }
  const key = form.layout === 'next_cursor' ? 'next_cursor' : 'cursor'
  yield `${form.layout === 'data' ? '}' : ''},"${key}":${JSON.stringify(form.cursor)},"as_of":"${form.as_of}"}`
}

/** What a feed cursor stands for; `pause` marks one that followed a page without events. */
interface FeedPosition {
  readonly seed: number
  readonly epoch: number
  readonly seq: number
  readonly pause: boolean
}

/** What a page of the feed needs to know beside the registry itself. */
interface FeedSettings {
  readonly faults: readonly Fault[]
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
  const has = (kind: Fault['kind']): boolean => pick(settings.faults, kind) !== undefined
  const repeats = has('repeated-events')
  if (has('empty-pages') && !pause && since < view.seq) {
    return { events: [], next_cursor: cursor(since, true), has_more: true }
  }
  const until = Math.min(since + limit, view.seq)
  const first = repeats ? Math.max(0, since - repeatedRows) : since
  const all = eventsOf(view, view.store.audit.slice(first, until), settings.embed, (seq) => cursor(seq, false))
  const events = all.filter(({ entity_type, entity_id }) => !settings.loses(entity_type, entity_id))
  const last = events.at(-1)
  if (repeats && last) events.push(last)
  const more = until < view.seq
  return { events, next_cursor: !more && has('null-cursor') ? null : cursor(until, false), has_more: more }
}

function eventsOf(view: RegistryView, rows: readonly LogEntry[], embed: boolean, cursor: (seq: number) => string) {
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
function lastKnown(view: RegistryView, type: EntityType, id: string): EntityRow | null {
  const row = lastRow(view.store, type, id)
  if (!row || hashText(id) % 2 === 0) return null
  return Object.fromEntries(Object.entries(row).filter(([, value]) => !Array.isArray(value)))
}

function sign(seed: number, body: string): string {
  return hashText(`feed|${seed}|${body}`).toString(36)
}
