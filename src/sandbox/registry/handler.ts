import { type Fault, type FaultKind, pick } from '../faults.ts'
import { textStream } from '../metrics-body.ts'
import { invalidParameter, notFound, readLimit, readQuery, RefusedRequest } from '../refusal.ts'
import { recordOf, recordsOf, shownRow, tables, viewAt, type RegistryScale, type RegistryView } from './state.ts'
import { createdSeq, type EntityRow, type EntityType, firstFrom, idsOf, lastRow, type LogEntry } from './store.ts'
import { assetClasses, laterVenueType, venueTypes } from './entities.ts'
import { formatInstant } from '../../base/time.ts'
import type { SandboxNames } from '../provider/provider.ts'
import { hashText } from '../world/noise.ts'

/** A table of the registry; derived, because `tables` lists them once. */
type EntityTable = keyof typeof tables

/**
 * Comparison of a filter with a field, that of its name unless it names another: exactly, without regard to case, or as
 * addresses do.
 */
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

/**
 * Builds one page of a list in id order, after the filters, without `as_of`; the deployment list has verified rows
 * only.
 */
function listPage(
  view: RegistryView,
  table: EntityTable,
  query: URLSearchParams,
  omits: (table: EntityTable, id: string) => boolean,
) {
  const tableFilters = filters[table]
  const parameters = readQuery(query, ['limit', 'cursor', ...Object.keys(tableFilters)])
  const limit = readLimit(parameters)
  const passes = readFilters(tableFilters, parameters, table)
  const filtered = Object.keys(tableFilters).some((name) => parameters.has(name))
  const ids = idsOf(view.store, tables[table])
  const data: EntityRow[] = []
  let more = false
  for (let i = firstAfter(ids, parameters.get('cursor')); i < ids.length && !more; i++) {
    const id = ids[i] as string
    const row = shownRow(view, tables[table], id)
    if (!row || !passes(row) || (filtered && omits(table, id))) continue
    if (data.length === limit) more = true
    else data.push(recordOf(view, tables[table], id) as EntityRow)
  }
  const last = data.at(-1)?.['id'] as string | undefined
  return { data, next_cursor: more && last !== undefined ? last : null, has_more: more }
}

/** Finds the record behind a detail path; derivatives have none. */
function detail(view: RegistryView, table: EntityTable, id: string, query: URLSearchParams): EntityRow {
  readQuery(query, [])
  const record = table === 'derivatives' ? undefined : recordOf(view, tables[table], id)
  if (!record) throw notFound(`no entity with that id in ${table}`)
  return record
}

function readFilters(
  tableFilters: Readonly<Record<string, Filter>>,
  parameters: ReadonlyMap<string, string>,
  table: EntityTable,
): (row: EntityRow) => boolean {
  const tests = [...parameters].flatMap(([name, value]) => {
    const filter = tableFilters[name]
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

/** Builds the refusal for a cursor that is malformed, from an earlier epoch, or beyond the head. */
const invalidCursor = (message: string): RefusedRequest => new RefusedRequest(400, 'invalid_cursor', message)

function firstAfter(ids: readonly string[], cursor: string | undefined): number {
  if (cursor === undefined) return 0
  if (!idForm.test(cursor)) throw invalidCursor('cursor must be the next_cursor of the previous page')
  return firstFrom(ids.length, (n) => (ids[n] as string) > cursor)
}

/** Writes the body of a snapshot: one array a table, then the cursor and `as_of`, unless a fault sets another form. */
function* snapshotPieces(view: RegistryView, env: RegistryEnv, as_of: string): Generator<string> {
  const { layout, embedded } = pick(env.faults ?? [], 'registry-shape') ?? {}
  const shownTables = (Object.keys(tables) as EntityTable[]).filter(
    (table) => table !== 'deployments' || embedded !== 'products',
  )
  yield layout === 'data' ? '{"data":{' : '{'
  for (const [index, table] of shownTables.entries()) {
    yield `${index > 0 ? ',' : ''}"${table}":[`
    let comma = ''
    for (const record of recordsOf(view, tables[table], embedded !== 'array')) {
      yield comma + JSON.stringify(record)
      comma = ','
    }
    yield ']'
  }
  const key = layout === 'next_cursor' ? 'next_cursor' : 'cursor'
  yield `${layout === 'data' ? '}' : ''},"${key}":${JSON.stringify(headCursor(view, env))},"as_of":"${as_of}"}`
}

/** Settings of a page of the feed, in addition to the registry itself. */
interface FeedSettings {
  readonly faults: readonly Fault[]
  readonly seed: number
  readonly epoch: number
  readonly embed: boolean
  /** Whether the events of an entity are left out. */
  readonly loses: (type: EntityType, id: string) => boolean
}

/** Number of log entries by which a feed that repeats itself goes back. */
const repeatedRows = 4

/** A place in the feed. */
interface FeedCursor {
  readonly seed: number
  readonly epoch: number
  /** The entry of the log that the page before ended with, from 1; 0 for none. */
  readonly seq: number
  /** Whether the page before was one without events. */
  readonly pause: boolean
}

/** One event of the feed, in the keys of the document. */
interface FeedEvent {
  readonly entity_type: EntityType
  readonly entity_id: string
  readonly op: 'created' | 'updated' | 'deleted'
  /** The entity's record; of a removed one the fields that it last had, or null if they are forgotten. */
  readonly record: EntityRow | null
  readonly cursor: string
  /** ISO text. */
  readonly at: string
}

/** Formats the opaque text of a feed cursor. */
function writeCursor({ seed, epoch, seq, pause }: FeedCursor): string {
  const body = `${epoch}.${seq}.${pause ? 1 : 0}`
  return Buffer.from(`${body}.${sign(seed, body)}`).toString('base64url')
}

/** Reads a cursor of this epoch that is not beyond the head. */
function readCursor(text: string, settings: FeedSettings, head: number): FeedCursor {
  const plain = Buffer.from(text, 'base64url').toString()
  const match = /^((\d+)\.(\d+)\.([01]))\.([0-9a-z]+)$/.exec(plain)
  const [, body = '', epoch, seq, pause, signature] = match ?? []
  if (!match || signature !== sign(settings.seed, body)) throw invalidCursor('malformed cursor')
  if (Number(epoch) !== settings.epoch) throw invalidCursor('the feed has started a new epoch: take a new snapshot')
  if (Number(seq) > head) throw invalidCursor('cursor beyond the head of the feed')
  return { seed: settings.seed, epoch: settings.epoch, seq: Number(seq), pause: pause === '1' }
}

/**
 * Builds the page of events after the cursor `since`. `limit` counts entries of the log; an entity that several of them
 * touch comes once per page, always with its current state, ordered by the last of them.
 */
function feedPage(view: RegistryView, query: URLSearchParams, settings: FeedSettings) {
  const parameters = readQuery(query, ['since', 'limit'])
  const limit = readLimit(parameters)
  const text = parameters.get('since')
  if (text === undefined) throw invalidParameter('since is required')
  const { seq: since, pause } = readCursor(text, settings, view.seq)
  const cursor = (seq: number, paused: boolean): string =>
    writeCursor({ seed: settings.seed, epoch: settings.epoch, seq, pause: paused })
  const has = (kind: FaultKind): boolean => pick(settings.faults, kind) !== undefined
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

function eventsOf(
  view: RegistryView,
  rows: readonly LogEntry[],
  embed: boolean,
  cursor: (seq: number) => string,
): FeedEvent[] {
  const events = new Map<string, FeedEvent>()
  for (const row of rows) {
    for (const [type, id] of row.touched) {
      const key = `${type}/${id}`
      events.delete(key)
      events.set(key, eventOf(view, type, id, rows[0]?.seq ?? 0, embed, { cursor: cursor(row.seq), at: row.at }))
    }
  }
  return [...events.values()]
}

/** Builds one event: the entity's current state, or that it is gone. */
function eventOf(
  view: RegistryView,
  type: EntityType,
  id: string,
  firstSeq: number,
  embed: boolean,
  place: { cursor: string; at: number },
): FeedEvent {
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

/** Lists the top-level fields that a removed record last had; for one in two the registry has forgotten them. */
function lastKnown(view: RegistryView, type: EntityType, id: string): EntityRow | null {
  const row = lastRow(view.store, type, id)
  if (!row || hashText(id) % 2 === 0) return null
  return Object.fromEntries(Object.entries(row).filter(([, value]) => !Array.isArray(value)))
}

const sign = (seed: number, body: string): string => hashText(`feed|${seed}|${body}`).toString(36)

/** Environment of the registry side of the sandbox: seed, keys, clock, size, epochs and faults. */
interface RegistryEnv {
  seed: number
  /** Names in use; with real names, tokenized stocks of the metrics API are products too (default `placeholder`). */
  names?: SandboxNames
  key: string
  /** Unix seconds. */
  now: () => number
  scale: RegistryScale
  /** Unix seconds at which a new epoch of the feed starts. */
  epochStarts?: readonly number[]
  /** The faults that strike this request. */
  faults?: readonly Fault[]
  requestId: string
}

/** The version prefix that every path of the registry begins with. */
export const registryPrefix = '/registry/v1'

const keyNames = new Set(['key', 'api_key', 'apikey', 'api-key', 'access_token', 'token', 'authorization'])

/** Answers one request of the registry; limits, quotas and injected failures are the caller's. */
export function answerRegistry(request: Request, env: RegistryEnv): Response {
  const now = Math.floor(env.now())
  const id = env.requestId
  const headers = {
    'content-type': 'application/json; charset=utf-8',
    'cache-control': 'private, no-store',
    'x-request-id': id,
  }
  try {
    const response = route(request, env, now)
    for (const [name, value] of Object.entries(headers)) response.headers.set(name, value)
    if (response.body === null) response.headers.delete('content-type')
    return response
  } catch (error) {
    if (!(error instanceof RefusedRequest)) throw error
    const body = { error: { code: error.code, message: error.message }, request_id: id }
    const allow = error.status === 405 ? { allow: 'GET' } : {}
    return new Response(JSON.stringify(body), { status: error.status, headers: { ...headers, ...allow } })
  }
}

function route(request: Request, env: RegistryEnv, now: number): Response {
  const url = new URL(request.url)
  if (request.method !== 'GET') throw new RefusedRequest(405, 'method_not_allowed', 'only GET is answered')
  authorize(request, url.searchParams, env)
  const inside = url.pathname.startsWith(`${registryPrefix}/`)
  const [segment = '', ...rest] = inside ? url.pathname.slice(registryPrefix.length + 1).split('/') : ['']
  const { faults = [] } = env
  const fullView = viewAt(env, now)
  const shownView = liedTo(fullView, faults, true)
  const view = liedTo(fullView, faults, false)
  const as_of = formatInstant(now)
  const path = [segment, ...rest].join('/')
  if (path === 'snapshot') return snapshot(shownView, env, url.searchParams, as_of)
  if (path === 'changes') return changes(shownView, env, url.searchParams, as_of)
  if (path === 'changes/head') {
    readQuery(url.searchParams, [])
    return Response.json({ cursor: headCursor(view, env), as_of })
  }
  if (!Object.hasOwn(tables, segment) || rest.length > 1) throw notFound('no such path')
  const table = segment as EntityTable
  const omits = (table: EntityTable, id: string): boolean => isLied(faults, 'filter-omits', tables[table], id)
  if (rest[0] === undefined) return tagged(request, listPage(view, table, url.searchParams, omits), as_of)
  return tagged(request, { data: detail(view, table, decoded(rest[0]), url.searchParams) }, as_of)
}

function authorize(request: Request, query: URLSearchParams, env: RegistryEnv): void {
  for (const [name, value] of query) {
    const carriesKey = keyNames.has(name.toLowerCase()) || value === env.key
    if (carriesKey) throw unauthorized('a key in the query string is not accepted: send Authorization: Bearer')
  }
  const key = /^Bearer ([^\s]+)$/i.exec(request.headers.get('authorization') ?? '')?.[1]
  if (key === undefined) throw unauthorized('missing or malformed key')
  if (key !== env.key) throw unauthorized('unknown key')
}

const unauthorized = (message: string): RefusedRequest => new RefusedRequest(401, 'unauthorized', message)

function snapshot(view: RegistryView, env: RegistryEnv, query: URLSearchParams, as_of: string): Response {
  readQuery(query, [])
  return new Response(textStream(snapshotPieces(view, env, as_of)))
}

function changes(view: RegistryView, env: RegistryEnv, query: URLSearchParams, as_of: string): Response {
  const { faults = [] } = env
  const shape = pick(faults, 'registry-shape')
  const { events, next_cursor, has_more } = feedPage(view, query, {
    faults,
    seed: env.seed,
    epoch: epochAt(env, view.at),
    embed: shape?.embedded !== 'array',
    loses: (type, id) => isLied(faults, 'lost-event', type, id),
  })
  return Response.json({ [shape?.events ?? 'data']: events, next_cursor, has_more, as_of })
}

/** Builds a list or detail answer with its entity tag; 304 without a body if the reader has it already. */
function tagged(request: Request, content: object, as_of: string): Response {
  const text = JSON.stringify(content)
  const etag = `"${hashText(text).toString(16)}-${text.length.toString(16)}"`
  const entityTags = (request.headers.get('if-none-match') ?? '')
    .split(',')
    .map((tag) => tag.trim().replace(/^W\//, ''))
  if (entityTags.includes(etag) || entityTags.includes('*'))
    return new Response(null, { status: 304, headers: { etag } })
  return new Response(`${text.slice(0, -1)},"as_of":"${as_of}"}`, { headers: { etag } })
}

function headCursor(view: RegistryView, env: RegistryEnv): string {
  return writeCursor({ seed: env.seed, epoch: epochAt(env, view.at), seq: view.seq, pause: false })
}

const epochAt = (env: RegistryEnv, at: number): number => (env.epochStarts ?? []).filter((start) => start <= at).length

function decoded(segment: string): string {
  try {
    return decodeURIComponent(segment)
  } catch {
    throw notFound('no entity with that id')
  }
}

/** Applies the lies of faults to a view; `isShown` is true for snapshot and feed, false for addresses and lists. */
function liedTo(view: RegistryView, faults: readonly Fault[], isShown: boolean): RegistryView {
  const lies = faults.filter(({ kind }) => kind === 'silent-change' || (isShown && kind === 'wrong-retirement'))
  if (lies.length === 0) return view
  const edit = (type: EntityType, id: string, row: EntityRow): EntityRow =>
    lies.filter((lie) => isAbout(lie, type, id)).reduce((shown, lie) => ({ ...shown, ...changed(lie, shown) }), row)
  return { ...view, edit }
}

/** Whether one of the faults is of this kind and about this entity. */
function isLied(faults: readonly Fault[], kind: FaultKind, type: EntityType, id: string): boolean {
  return faults.some((lie) => lie.kind === kind && isAbout(lie, type, id))
}

function isAbout({ record = '' }: Fault, type: EntityType, id: string): boolean {
  const [table = '', ...rest] = record.split('/')
  return Object.hasOwn(tables, table) && tables[table as EntityTable] === type && rest.join('/') === id
}

function changed({ kind, field = 'name', value }: Fault, row: EntityRow): EntityRow {
  if (kind === 'wrong-retirement') return { status: 'inactive' }
  if (value === undefined) {
    const before = row[field]
    return { [field]: `${typeof before === 'string' ? before : JSON.stringify(before)} (restated)` }
  }
  try {
    return { [field]: JSON.parse(value) as unknown }
  } catch {
    return { [field]: value }
  }
}
