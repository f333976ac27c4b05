import type { Resource } from '../catalog/catalogue.ts'
import { exactText, type Fields, hasOddNumbers, isFields, sortedText, textOf, type Value } from './json.ts'
import { fieldText, type Incoming, readRecord, textHash } from './record.ts'

/** A body that could be read, or why not. */
export type Read<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly reason: string }

/** The parts of an envelope around records. */
interface Envelope {
  readonly as_of: string | null
  readonly cursor: string | null
}

/** The whole registry at one moment: resource -> id -> record. */
export type Records = ReadonlyMap<string, ReadonlyMap<string, Incoming>>

/** A snapshot as read. */
export interface Snapshot extends Envelope {
  readonly records: Records
  /** Deployments whose two places in the body disagree. */
  readonly disagreeing: readonly string[]
}

/** A page of a list. */
export interface ListPage extends Envelope {
  readonly records: readonly Value[]
  readonly hasMore: boolean
  readonly odd: boolean
}

/** One event of the feed; `incoming` is null where the entity is gone, `resource` where its type is not known. */
export interface FeedEvent {
  readonly type: string
  readonly resource: string | null
  readonly id: string
  readonly op: string
  readonly incoming: Incoming | null
  /** The event as received. */
  readonly text: string
}

/** A page of the feed. */
export interface FeedPage extends Envelope {
  readonly events: readonly FeedEvent[]
  readonly hasMore: boolean
}

export type Resources = ReadonlyMap<string, Resource>

class BadBody extends Error {}

/** Runs a reading; a body that cannot be read is a value. */
function guarded<T>(work: () => T): Read<T> {
  try {
    return { ok: true, value: work() }
  } catch (error) {
    if (error instanceof BadBody) return { ok: false, reason: error.message }
    throw error
  }
}

/** The body as text; bytes that are no UTF-8 are an error. */
function parse(bytes: Uint8Array): { value: Fields; odd: boolean } {
  if (bytes.length === 0) throw new BadBody('an empty body')
  let text: string
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    throw new BadBody('bytes that are no UTF-8')
  }
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    const start = text.trimStart().slice(0, 60)
    if (start.startsWith('<')) throw new BadBody('HTML where JSON belongs')
    if (!/^[{["]/.test(start)) throw new BadBody('something that is no JSON')
    throw new BadBody('JSON that is cut or damaged')
  }
  if (!isFields(value)) throw new BadBody(value === null ? 'null' : 'something that is no JSON object')
  return { value, odd: hasOddNumbers(text) }
}

function envelope(body: Fields, cursorKeys: readonly string[]): Envelope {
  const inner = isFields(body['data']) ? body['data'] : {}
  const find = (keys: readonly string[]): string | null => {
    for (const key of keys)
      for (const place of [body, inner]) {
        const value = place[key]
        if (typeof value === 'string' && value !== '') return value
        if (typeof value === 'number') return String(value)
      }
    return null
  }
  return { as_of: find(['as_of', 'asOf']), cursor: find(cursorKeys) }
}

/**
 * Reads a snapshot: arrays by the names of the resources, at top level or under `data`; deployments in an array of
 * their own, inside the products, or both.
 */
export function readSnapshot(bytes: Uint8Array, resources: Resources): Read<Snapshot> {
  return guarded(() => {
    const { value, odd } = parse(bytes)
    const place = arraysOf(value, resources)
    const arrays = new Map<string, readonly Value[]>()
    for (const { name, entity } of resources.values()) {
      const array = place[name] ?? place[entity]
      if (array === undefined || array === null) continue
      if (!Array.isArray(array)) throw new BadBody(`${name} that are no array`)
      arrays.set(name, array as readonly Value[])
    }
    if (arrays.size === 0) throw new BadBody('a snapshot without any known resource')
    const head = envelope(value, ['cursor', 'next_cursor'])
    if (head.cursor === null) throw new BadBody('a snapshot without a cursor')
    return { ...head, ...gather(arrays, resources, odd) }
  })
}

function arraysOf(body: Fields, resources: Resources): Fields {
  const names = [...resources.values()].flatMap(({ name, entity }) => [name, entity])
  const holds = (value: Value | undefined): value is Fields =>
    isFields(value) && names.some((name) => Array.isArray(value[name]))
  for (const candidate of [body, body['data'], body['snapshot']]) if (holds(candidate)) return candidate
  return {}
}

/** Reads and unites the arrays that all pages of the lists gave. */
export function readGathered(
  arrays: ReadonlyMap<string, readonly Value[]>,
  resources: Resources,
  odd: boolean,
): Read<Pick<Snapshot, 'records' | 'disagreeing'>> {
  return guarded(() => gather(arrays, resources, odd))
}

function gather(
  arrays: ReadonlyMap<string, readonly Value[]>,
  resources: Resources,
  odd: boolean,
): Pick<Snapshot, 'records' | 'disagreeing'> {
  const all = new Map<string, Map<string, Incoming>>()
  for (const [name, array] of arrays) {
    const resource = resources.get(name)
    if (!resource || name === 'products') continue
    all.set(name, readAll(resource, array, odd))
  }
  const disagreeing = products(arrays.get('products'), resources, odd, all)
  return { records: all, disagreeing }
}

function readAll(resource: Resource, array: readonly Value[], odd: boolean): Map<string, Incoming> {
  const found = new Map<string, Incoming>()
  for (const value of array) {
    const incoming = accept(readRecord(resource, value, odd))
    const twin = found.get(incoming.id)
    if (twin && twin.hash !== incoming.hash) throw new BadBody(`${resource.name} ${incoming.id}: two records of one id`)
    found.set(incoming.id, incoming)
  }
  return found
}

/** Products and the deployments inside them: both places are united, the array of its own wins. */
function products(
  array: readonly Value[] | undefined,
  resources: Resources,
  odd: boolean,
  all: Map<string, Map<string, Incoming>>,
): string[] {
  const [product, deployment] = [resources.get('products'), resources.get('deployments')]
  if (!array || !product || !deployment) return []
  const own = all.get('deployments')
  const inside = new Map<string, Incoming>()
  const disagreeing: string[] = []
  for (const value of array) {
    if (!isFields(value) || !Array.isArray(value['deployments'])) continue
    for (const held of value['deployments'] as readonly Value[]) {
      const incoming = accept(readRecord(deployment, withProduct(deployment, held, value['id'] ?? null), odd))
      const twin = own?.get(incoming.id)
      if (!twin) inside.set(incoming.id, incoming)
      else if (twin.hash !== incoming.hash && disagree(twin.text, incoming.text)) disagreeing.push(incoming.id)
    }
  }
  if (own || inside.size > 0) all.set('deployments', new Map([...(own ?? []), ...inside]))
  const ofProduct = new Map<string, Incoming[]>()
  const bare = array.some((value) => isFields(value) && value['deployments'] === undefined)
  if (bare) for (const found of all.get('deployments')?.values() ?? []) push(ofProduct, found.product ?? '', found)
  const whole = bare ? array.map((value) => withDeployments(value, ofProduct)) : array
  all.set('products', readAll(product, whole, odd))
  return disagreeing
}

function push(lists: Map<string, Incoming[]>, key: string, item: Incoming): void {
  const list = lists.get(key)
  if (list) list.push(item)
  else lists.set(key, [item])
}

/** An embedded deployment need not say whose it is. */
function withProduct(deployment: Resource, value: Value, product: Value): Value {
  const named = isFields(value) && fieldText(deployment.fields['product_id'], value) !== null
  return named || !isFields(value) ? value : { ...value, product_id: product }
}

function withDeployments(value: Value, ofProduct: ReadonlyMap<string, readonly Incoming[]>): Value {
  if (!isFields(value) || value['deployments'] !== undefined || typeof value['id'] !== 'string') return value
  return { ...value, deployments: embedded(ofProduct.get(value['id']) ?? []) }
}

/** The deployments as a product embeds them: in the order of their ids. */
export function embedded(deployments: readonly Incoming[]): Value[] {
  const sorted = deployments.toSorted((a, b) => (a.id < b.id ? -1 : a.id > b.id ? 1 : 0))
  return sorted.map(({ text }) => JSON.parse(text) as Value)
}

/** One of the two may be an extract: only what both say can disagree. */
function disagree(own: string, other: string): boolean {
  const [a, b] = [JSON.parse(own) as Fields, JSON.parse(other) as Fields]
  return Object.keys(b).some((key) => a[key] !== undefined && sortedText(a[key]) !== sortedText(b[key] ?? null))
}

function accept(read: Incoming | string): Incoming {
  if (typeof read === 'string') throw new BadBody(read)
  return read
}

/** Reads one page of a list; `next_cursor` null or `has_more` false end it. */
export function readList(bytes: Uint8Array, resource: Resource): Read<ListPage> {
  return guarded(() => {
    const { value, odd } = parse(bytes)
    const records = value['data'] ?? value[resource.name]
    if (!Array.isArray(records)) throw new BadBody('a list without data')
    const head = envelope(value, ['next_cursor'])
    readAll(resource, records as readonly Value[], odd)
    return { ...head, records: records as readonly Value[], hasMore: more(value, head.cursor), odd }
  })
}

function more(body: Fields, cursor: string | null): boolean {
  return typeof body['has_more'] === 'boolean' ? body['has_more'] : cursor !== null
}

/** Reads the head of the feed. */
export function readHead(bytes: Uint8Array): Read<string> {
  return guarded(() => {
    const { cursor } = envelope(parse(bytes).value, ['cursor', 'head', 'head_cursor', 'next_cursor'])
    if (cursor === null) throw new BadBody('a head without a cursor')
    return cursor
  })
}

/** Reads one page of the feed: its events are the only array of objects, under whatever name; an empty page may have none. */
export function readPage(bytes: Uint8Array, resources: Resources): Read<FeedPage> {
  return guarded(() => {
    const { value, odd } = parse(bytes)
    const head = envelope(value, ['next_cursor'])
    if (typeof value['has_more'] !== 'boolean') throw new BadBody('a page of the feed without has_more')
    if (value['has_more'] && head.cursor === null) throw new BadBody('has_more without a next_cursor')
    const events = eventsOf(value).map((event) => readEvent(event, resources, odd))
    return { ...head, events, hasMore: value['has_more'] }
  })
}

function eventsOf(body: Fields): readonly Value[] {
  const inner = isFields(body['data']) ? Object.entries(body['data']) : []
  const named = ['data', 'changes', 'events'].map((key): [string, Value | undefined] => [key, body[key]])
  const arrays = [...named, ...Object.entries(body), ...inner].filter(([, value]) => Array.isArray(value))
  const full = arrays.find(([, value]) => (value as readonly Value[]).some(isFields)) ?? arrays[0]
  return (full?.[1] ?? []) as readonly Value[]
}

function readEvent(value: Value, resources: Resources, odd: boolean): FeedEvent {
  if (!isFields(value)) throw new BadBody('an event that is no object')
  const { entity_type: type, entity_id: given, op, record = null } = value
  if (typeof type !== 'string' || type === '') throw new BadBody('an event without entity_type')
  const id = given ?? (isFields(record) ? record['id'] : undefined)
  if (id === undefined || id === null || id === '') throw new BadBody(`${type}: an event without entity_id`)
  if (typeof id !== 'string') throw new BadBody(`${type}: an id that is a ${typeof id}, not a text`)
  if (typeof op !== 'string') throw new BadBody(`${type} ${id}: an event without op`)
  const text = textOf(value, odd)
  if (text.length > longestEvent) throw new BadBody(`${type} ${id}: an event of ${text.length} characters`)
  const resource = resourceOf(type, resources)
  const gone = op === 'deleted'
  if (!resource) return { type, resource: null, id, op, incoming: gone ? null : rawRecord(id, record), text }
  if (gone) return { type, resource: resource.name, id, op, incoming: null, text }
  if (record === null) throw new BadBody(`${type} ${id}: ${op} without a record`)
  const incoming = accept(readRecord(resource, record, odd))
  if (incoming.id !== id) throw new BadBody(`${type} ${id}: a record with the id ${incoming.id}`)
  return { type, resource: resource.name, id, op, incoming, text }
}

const longestEvent = 4_100_000

/** Singular, plural, whatever case. */
function resourceOf(type: string, resources: Resources): Resource | undefined {
  const word = type.toLowerCase()
  return [...resources.values()].find(({ name, entity }) => word === entity || word === name)
}

function rawRecord(id: string, record: Value): Incoming {
  const text = exactText(record)
  return { id, text, hash: textHash(text), product: null, verified: false, bare: false }
}
