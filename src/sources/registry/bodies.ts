import { isUtf8 } from 'node:buffer'
import type { Resource } from '../../catalog/catalogue.ts'
import { cutBody, textStart } from './body-records.ts'
import {
  BadBody,
  envelope,
  type Fields,
  isFields,
  recordJson,
  sortedText,
  usualFields,
  type Value,
  type Envelope,
} from './json.ts'
import { fieldText, type Incoming, readRecord, readRecordText, textHash, withHash, type RecordText } from './record.ts'

/** A body that could be read, or why not. */
export type BodyRead<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly reason: string }

/** The whole registry at one moment: resource -> id -> record. */
export type Records = ReadonlyMap<string, ReadonlyMap<string, Incoming>>

/** A snapshot as read. */
export interface Snapshot extends Envelope {
  readonly cursor: string
  readonly records: Records
  /** Deployments whose two places in the body disagree. */
  readonly disagreeing: readonly string[]
}

/** A page of a list. */
export interface RegistryPage extends Envelope {
  readonly records: readonly Value[]
  readonly hasMore: boolean
}

/** A page of the feed. */
interface FeedPage extends Envelope {
  readonly events: readonly RegistryChange[]
  readonly hasMore: boolean
}

export type Resources = ReadonlyMap<string, Resource>

/** Runs a reading; a body that cannot be read is a value. */
function guarded<T>(work: () => T): BodyRead<T> {
  try {
    return { ok: true, value: work() }
  } catch (error) {
    if (error instanceof BadBody) return { ok: false, reason: error.message }
    throw error
  }
}

/** Returns the bytes as a buffer; an empty body, or one that is not UTF-8, is an error. */
function textBytes(bytes: Uint8Array): Buffer {
  if (bytes.length === 0) throw new BadBody('an empty body')
  if (!isUtf8(bytes)) throw new BadBody('bytes that are no UTF-8')
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}

/** Runs the parsing of a body; if the body is not JSON, the error describes it. */
function strictly<T>(bytes: Buffer, work: () => T): T {
  try {
    return work()
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error
    const start = bytes.toString('utf8', textStart(bytes), 1000).trimStart()
    if (start.startsWith('<')) throw new BadBody('HTML where JSON belongs')
    if (!/^[{["]/.test(start)) throw new BadBody('something that is no JSON')
    throw new BadBody('JSON that is cut or damaged')
  }
}

function parse(bytes: Uint8Array): Fields {
  const buffer = textBytes(bytes)
  return objectOf(strictly(buffer, () => JSON.parse(buffer.toString('utf8', textStart(buffer))) as unknown))
}

function objectOf(value: unknown): Fields {
  if (!isFields(value)) throw new BadBody(value === null ? 'null' : 'something that is no JSON object')
  return value
}

/**
 * Reads a snapshot: arrays by the names of the resources, at top level or under `data`; deployments in an array of
 * their own, inside the products, or both.
 */
export function readSnapshot(bytes: Uint8Array, resources: Resources): BodyRead<Snapshot> {
  return guarded(() => {
    const buffer = textBytes(bytes)
    return strictly(buffer, () => {
      const { frame, elements, finish } = cutBody(buffer)
      const body = usualFields(objectOf(frame), resources)
      const arrays = arraysOf(body, resources, elements)
      const { as_of, cursor } = envelope(body, ['cursor', 'next_cursor'])
      if (cursor === null) throw new BadBody('a snapshot without a cursor')
      const united = unitedOf(arrays, resources)
      finish()
      return { as_of, cursor, ...united }
    })
  })
}

function arraysOf(body: Fields, resources: Resources, elements: (array: readonly Value[]) => Iterable<Value>) {
  const place = placeOf(body, resources)
  const arrays = new Map<string, Iterable<Value>>()
  for (const { name, entity } of resources.values()) {
    const array = place[name] ?? place[entity]
    if (array === undefined || array === null) continue
    if (!Array.isArray(array)) throw new BadBody(`${name} that are no array`)
    arrays.set(name, elements(array as readonly Value[]))
  }
  if (arrays.size === 0) throw new BadBody('a snapshot without any known resource')
  return arrays
}

function placeOf(body: Fields, resources: Resources): Fields {
  const names = [...resources.values()].flatMap(({ name, entity }) => [name, entity])
  const holds = (value: Value | undefined): value is Fields =>
    isFields(value) && names.some((name) => Array.isArray(value[name]))
  for (const candidate of [body, body['data'], body['snapshot']]) if (holds(candidate)) return candidate
  return {}
}

/** Reads and unites the arrays that all pages of the lists gave. */
export function readArrays(arrays: ReadonlyMap<string, readonly Value[]>, resources: Resources) {
  return guarded(() => unitedOf(arrays, resources))
}

function unitedOf(arrays: ReadonlyMap<string, Iterable<Value>>, resources: Resources) {
  const all = new Map<string, Map<string, Incoming>>()
  for (const [name, array] of arrays) {
    const resource = resources.get(name)
    if (!resource || name === 'products') continue
    all.set(name, readAll(resource, array))
  }
  const disagreeing = products(arrays.get('products'), resources, all)
  return { records: all, disagreeing }
}

function readAll(resource: Resource, array: Iterable<Value>): Map<string, Incoming> {
  const found = new Map<string, Incoming>()
  for (const value of array) take(resource, found, readRecord(resource, value))
  return found
}

function take(resource: Resource, found: Map<string, Incoming>, incoming: Incoming): void {
  const twin = found.get(incoming.id)
  if (twin && twin.hash !== incoming.hash) throw new BadBody(`${resource.name} ${incoming.id}: two records of one id`)
  found.set(incoming.id, incoming)
}

/** Products and the deployments inside them: both places are united, the array of its own wins. */
function products(array: Iterable<Value> | undefined, resources: Resources, all: Map<string, Map<string, Incoming>>) {
  const product = resources.get('products')
  const deployment = resources.get('deployments')
  if (!array || !product || !deployment) return []
  const deploymentRecords = all.get('deployments')
  const inside = new Map<string, Incoming>()
  const disagreeing: string[] = []
  // A product without embedded deployments waits for all deployments; the others need not be kept as values.
  const wholeRecords: Met[] = []
  for (const value of array) {
    const embeddedDeployments = isFields(value) ? value['deployments'] : undefined
    if (isFields(value) && embeddedDeployments === undefined) {
      wholeRecords.push({ bare: value })
      continue
    }
    const read = readRecordText(product, value)
    wholeRecords.push({ dressed: withHash(product, read) })
    let from = Math.max(0, read.text.indexOf('"deployments":['))
    for (const embeddedDeployment of Array.isArray(embeddedDeployments)
      ? (embeddedDeployments as readonly Value[])
      : []) {
      const twin = deploymentRecords?.get(
        isFields(embeddedDeployment) && typeof embeddedDeployment['id'] === 'string' ? embeddedDeployment['id'] : '',
      )
      // The text of a product contains those of its deployments: an unchanged one need not be serialised again.
      const place = twin ? read.text.indexOf(twin.text, from) : -1
      if (twin && place >= 0) from = place + twin.text.length
      else
        unite(
          deployment,
          readRecordText(deployment, withProduct(deployment, embeddedDeployment, read.id)),
          deploymentRecords,
          inside,
          disagreeing,
        )
    }
  }
  if (deploymentRecords || inside.size > 0) all.set('deployments', new Map([...(deploymentRecords ?? []), ...inside]))
  all.set('products', dressAll(product, wholeRecords, all.get('deployments')))
  return disagreeing
}

/**
 * Adds a deployment inside a product to those found there, unless it is also listed on its own; notes whether the two
 * disagree.
 */
function unite(
  deployment: Resource,
  read: RecordText,
  listedRecords: ReadonlyMap<string, Incoming> | undefined,
  inside: Map<string, Incoming>,
  disagreeing: string[],
): void {
  const twin = listedRecords?.get(read.id)
  if (!twin) inside.set(read.id, withHash(deployment, read))
  else if (twin.text !== read.text && disagree(twin.text, read.record)) disagreeing.push(read.id)
}

/** A product as received: read, or still without its deployments. */
type Met = { readonly dressed: Incoming } | { readonly bare: Fields }

/** Adds the deployments to the products that were received without them. */
function dressAll(product: Resource, whole: readonly Met[], deployments: ReadonlyMap<string, Incoming> | undefined) {
  const embeddable = whole.some((met) => 'bare' in met) ? [...(deployments?.values() ?? [])] : []
  const ofProduct = Map.groupBy(embeddable, ({ product }) => product ?? '')
  const read = new Map<string, Incoming>()
  for (const met of whole)
    take(product, read, 'dressed' in met ? met.dressed : readRecord(product, withDeployments(met.bare, ofProduct)))
  return read
}

/** Adds the product's id to an embedded deployment, which may leave it out. */
function withProduct(deployment: Resource, value: Value, product: Value): Value {
  const named = isFields(value) && fieldText(deployment.fields['product_id'], value) !== null
  return named || !isFields(value) ? value : { ...value, product_id: product }
}

function withDeployments(value: Fields, ofProduct: ReadonlyMap<string, readonly Incoming[]>): Value {
  if (typeof value['id'] !== 'string') return value
  return { ...value, deployments: embedDeployments(ofProduct.get(value['id']) ?? []) }
}

/** Embeds deployments as a product does: in the order of their ids. */
export function embedDeployments(deployments: readonly Pick<Incoming, 'id' | 'text'>[]): Value[] {
  const sorted = deployments.toSorted((a, b) => (a.id < b.id ? -1 : a.id > b.id ? 1 : 0))
  return sorted.map(({ text }) => JSON.parse(text) as Value)
}

/** Whether two copies of a record differ in a key that both have; one of them may be an extract. */
function disagree(listedText: string, b: Fields): boolean {
  const a = JSON.parse(listedText) as Fields
  return Object.keys(b).some(
    (key) => Object.hasOwn(a, key) && sortedText(a[key] ?? null) !== sortedText(b[key] ?? null),
  )
}

/** Reads one page of a list; `next_cursor` null or `has_more` false end it. */
export function readList(bytes: Uint8Array, resource: Resource): BodyRead<RegistryPage> {
  return guarded(() => {
    const value = usualFields(parse(bytes), resource)
    const records = value['data'] ?? value[resource.name]
    if (!Array.isArray(records)) throw new BadBody('a list without data')
    const head = envelope(value, ['next_cursor'])
    readAll(resource, records as readonly Value[])
    return { ...head, records: records as readonly Value[], hasMore: more(value, head.cursor) }
  })
}

/** Reads the answer of one record's own address. */
export function readDetail(bytes: Uint8Array, resource: Resource): BodyRead<Incoming> {
  return guarded(() => {
    const value = usualFields(parse(bytes), resource)
    return readRecord(resource, value['data'] ?? value[resource.entity] ?? null)
  })
}

function more(body: Fields, cursor: string | null): boolean {
  return typeof body['has_more'] === 'boolean' ? body['has_more'] : cursor !== null
}

/** Reads the head of the feed. */
export function readHead(bytes: Uint8Array, resources: Resources): BodyRead<string> {
  return guarded(() => {
    const { cursor } = envelope(usualFields(parse(bytes), resources), ['cursor', 'head', 'head_cursor', 'next_cursor'])
    if (cursor === null) throw new BadBody('a head without a cursor')
    return cursor
  })
}

/**
 * Reads one page of the feed: its events are the only array of objects, under any name; an empty page may have none.
 */
export function readPage(bytes: Uint8Array, resources: Resources): BodyRead<FeedPage> {
  return guarded(() => {
    const value = usualFields(parse(bytes), resources)
    const head = envelope(value, ['next_cursor'])
    if (typeof value['has_more'] !== 'boolean') throw new BadBody('a page of the feed without has_more')
    if (value['has_more'] && head.cursor === null) throw new BadBody('has_more without a next_cursor')
    const events = eventsOf(value).map((event) => readEvent(event, resources))
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

/** One event of the feed. */
export interface RegistryChange {
  /** The entity's type as sent. */
  readonly type: string
  /** The resource of that type; null if the type is not known. */
  readonly resource: string | null
  readonly id: string
  /** The change of the entity, such as `updated` or `deleted`. */
  readonly op: string
  /** Record of the entity; null if it is gone. */
  readonly incoming: Incoming | null
  /** The event as received, JSON. */
  readonly text: string
}

function readEvent(value: Value, resources: Resources): RegistryChange {
  if (!isFields(value)) throw new BadBody('an event that is no object')
  const { entity_type: type, entity_id: entityId, op, record = null } = usualFields(value, resources)
  if (typeof type !== 'string' || type === '') throw new BadBody('an event without entity_type')
  const id = entityId ?? (isFields(record) ? record['id'] : undefined)
  if (id === undefined || id === null || id === '') throw new BadBody(`${type}: an event without entity_id`)
  if (typeof id !== 'string') throw new BadBody(`${type}: an id that is a ${typeof id}, not a text`)
  if (typeof op !== 'string') throw new BadBody(`${type} ${id}: an event without op`)
  const resource = resourceOf(type, resources)
  const isDeleted = op === 'deleted'
  if (!isDeleted && resource && record === null) throw new BadBody(`${type} ${id}: ${op} without a record`)
  const incoming = isDeleted ? null : resource ? readRecord(resource, record) : rawRecord(type, id, record)
  if (incoming && incoming.id !== id) throw new BadBody(`${type} ${id}: a record with the id ${incoming.id}`)
  const text = eventText(value, incoming)
  if (text.length > longestEvent) throw new BadBody(`${type} ${id}: an event of ${text.length} characters`)
  return { type, resource: resource?.name ?? null, id, op, incoming, text }
}

/** Formats the event as received, with the text of its record, which is available already. */
function eventText(event: Fields, incoming: Incoming | null): string {
  const members = Object.entries(event).map(([key, member]) => {
    const text = key === 'record' && incoming ? incoming.text : recordJson(member, 'an event')
    return `${JSON.stringify(key)}:${text}`
  })
  return `{${members.join(',')}}`
}

const longestEvent = 4_100_000

/** Finds a resource by its singular or plural name, in any case. */
function resourceOf(type: string, resources: Resources): Resource | undefined {
  const word = type.toLowerCase()
  return [...resources.values()].find(({ name, entity }) => word === entity.toLowerCase() || word === name)
}

function rawRecord(type: string, id: string, record: Value): Incoming {
  const text = recordJson(record, `${type} ${id}`)
  return { id, text, hash: textHash(text), product: null, verified: false, bare: false }
}
