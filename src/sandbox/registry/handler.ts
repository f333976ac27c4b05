import { formatInstant } from '../../time.ts'
import { type RegistryScale, type RegistryView, type EntityTable, tables, viewAt } from './state.ts'
import { hashText } from '../world/noise.ts'
import { type Fault, pick } from '../faults.ts'
import { feedPage, writeCursor, detail, listPage, snapshotBody } from './pages.ts'
import { RefusedRequest, notFound, readQuery } from '../refusal.ts'
import type { EntityType, EntityRow } from './store.ts'

/** What the registry side of the sandbox answers from: seed, keys, clock, size, epochs and faults. */
export interface RegistryEnv {
  seed: number
  key: string
  /** Unix seconds. */
  now: () => number
  scale: RegistryScale
  /** Unix seconds at which a new epoch of the feed starts. */
  epochStarts?: readonly number[]
  /** Those that strike this request. */
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
  const whole = viewAt(env, now)
  const [told, view] = [liedTo(whole, faults, true), liedTo(whole, faults, false)]
  const as_of = formatInstant(now)
  const path = [segment, ...rest].join('/')
  if (path === 'snapshot') return snapshot(told, env, url.searchParams, as_of)
  if (path === 'changes') return changes(told, env, url.searchParams, as_of)
  if (path === 'changes/head') {
    readQuery(url.searchParams, [])
    return Response.json({ cursor: headCursor(view, env), as_of })
  }
  if (!Object.hasOwn(tables, segment) || rest.length > 1) throw notFound('no such path')
  const table = segment as EntityTable
  const omits = (own: EntityTable, id: string): boolean => isLied(faults, 'filter-omits', tables[own], id)
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

function unauthorized(message: string): RefusedRequest {
  return new RefusedRequest(401, 'unauthorized', message)
}

function snapshot(view: RegistryView, env: RegistryEnv, query: URLSearchParams, as_of: string): Response {
  readQuery(query, [])
  const { layout, embedded } = pick(env.faults ?? [], 'registry-shape') ?? {}
  return new Response(snapshotBody(view, { layout, embedded, cursor: headCursor(view, env), as_of }))
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

/** A list or detail answer with its entity tag; 304 without a body when the reader holds it already. */
function tagged(request: Request, content: object, as_of: string): Response {
  const text = JSON.stringify(content)
  const etag = `"${hashText(text).toString(16)}-${text.length.toString(16)}"`
  const held = (request.headers.get('if-none-match') ?? '').split(',').map((tag) => tag.trim().replace(/^W\//, ''))
  if (held.includes(etag) || held.includes('*')) return new Response(null, { status: 304, headers: { etag } })
  return new Response(`${text.slice(0, -1)},"as_of":"${as_of}"}`, { headers: { etag } })
}

function headCursor(view: RegistryView, env: RegistryEnv): string {
  return writeCursor({ seed: env.seed, epoch: epochAt(env, view.at), seq: view.seq, pause: false })
}

function epochAt(env: RegistryEnv, at: number): number {
  return (env.epochStarts ?? []).filter((start) => start <= at).length
}

function decoded(segment: string): string {
  try {
    return decodeURIComponent(segment)
  } catch {
    throw notFound('no entity with that id')
  }
}

/** The view of whoever asks by this way: `told` is what snapshot and feed say, else addresses and lists. */
function liedTo(view: RegistryView, faults: readonly Fault[], told: boolean): RegistryView {
  const own = faults.filter(({ kind }) => kind === 'silent-change' || (told && kind === 'wrong-retirement'))
  if (own.length === 0) return view
  const edit = (type: EntityType, id: string, row: EntityRow): EntityRow =>
    own.filter((lie) => isAbout(lie, type, id)).reduce((shown, lie) => ({ ...shown, ...changed(lie, shown) }), row)
  return { ...view, edit }
}

/** Whether one of the faults is of this kind and about this entity. */
function isLied(faults: readonly Fault[], kind: Fault['kind'], type: EntityType, id: string): boolean {
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
