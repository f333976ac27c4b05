import type { Resource } from '../../catalog/catalogue.ts'
import { embedDeployments, type Records, type RegistryChange, type Resources } from './bodies.ts'
import { type Fields, recordJson, type Value } from './json.ts'
import { changeLine, isSame, isSameBut, type KnownKeys, learnKeys, noKeys } from './keys.ts'
import {
  childrenOf,
  fieldText,
  type Incoming,
  textHash,
  typedFields,
  type EmbeddedRow,
  type TypedFields,
} from './record.ts'

/** The lake's record of one entity: its newest version, or that it is gone. */
export interface StoredEntity {
  readonly id: string
  readonly open: boolean
  /** The hash of the text when it was last seen; null once the entity is gone. */
  readonly hash: string | null
  /** Time at which that text was first seen, in microseconds. */
  readonly at: number
  readonly product: string | null
  readonly verified: boolean
  /**
   * Values of an open entity in the fields of its resource's filters (`filterFields`); absent if they were not read.
   */
  readonly fields?: readonly (string | null)[]
}

/** All stored entities: resource -> id -> entity. */
export type StoredEntities = ReadonlyMap<string, ReadonlyMap<string, StoredEntity>>

/** The texts of a stored entity: of its open version, and as last seen, which may have further keys. */
export interface StoredTexts {
  readonly version: string
  readonly latest: string
}

/** The whole registry as one answer (or the lists together) showed it. */
interface WholeState {
  readonly records: Records
  readonly source: 'snapshot' | 'lists'
  /** Nothing was known before: its records are found, not created. */
  readonly first: boolean
  /** Whether it ends a gap in the feed, so that the time of its differences is not known. */
  readonly inferred: boolean
}

/** The state of an entity at the end of a poll. */
interface Outlook {
  readonly incoming: Incoming | null
  readonly source: 'snapshot' | 'lists' | 'feed'
  readonly inferred: boolean
  readonly first: boolean
  /** Reason for which it is gone; null otherwise. */
  readonly closedBy: string | null
  /** Whether it was gone for a moment of this poll. */
  readonly returned: boolean
}

/** A poll under way: all observations, folded to the latest state of each entity. */
export interface Poll {
  readonly storedEntities: StoredEntities
  readonly outlook: Map<string, Map<string, Outlook>>
}

/** Creates a poll that has seen nothing yet. */
export const newPoll = (storedEntities: StoredEntities): Poll => ({
  storedEntities,
  outlook: new Map(),
})

function tell(poll: Poll, resource: string, id: string, next: Outlook): void {
  let outlooks = poll.outlook.get(resource)
  if (!outlooks) poll.outlook.set(resource, (outlooks = new Map<string, Outlook>()))
  outlooks.set(id, next)
}

/** Whether the entity exists, according to the poll so far. */
function isOpen(poll: Poll, resource: string, id: string): boolean {
  const outlook = poll.outlook.get(resource)?.get(id)
  return outlook ? outlook.incoming !== null : wasHeld(poll, resource, id)
}

/** Lists the ids of existing entities, according to the poll so far. */
export function* openIds(poll: Poll, resource: string): Generator<string> {
  const outlooks = poll.outlook.get(resource)
  for (const entity of poll.storedEntities.get(resource)?.values() ?? [])
    if (entity.open && !outlooks?.has(entity.id)) yield entity.id
  for (const [id, { incoming }] of outlooks ?? []) if (incoming) yield id
}

/** Applies a whole state to the poll: entities in it exist, all others are gone. */
export function observeState(poll: Poll, state: WholeState): void {
  const { source, first, inferred } = state
  const seen = { source, first, inferred, returned: false }
  for (const [resource, records] of state.records) {
    const goneIds = [...openIds(poll, resource)].filter((id) => !records.has(id))
    for (const id of goneIds) {
      if (source === 'lists' && resource === 'deployments' && staysUnseen(poll, state, id)) continue
      tell(poll, resource, id, { ...seen, incoming: null, closedBy: source })
    }
    for (const [id, incoming] of records) tell(poll, resource, id, { ...seen, incoming, closedBy: null })
  }
}

/** Adds empty arrays for missing ones, if the user accepts that. */
export function withMissing(records: Records, resources: Resources): Records {
  const missing = [...resources.keys()].filter((name) => !records.has(name))
  const all = new Map(records)
  for (const name of missing) all.set(name, new Map())
  return all
}

/**
 * Whether a deployment counts as present although the list does not show it: the list contains only verified ones, so
 * others go only with their product.
 */
function staysUnseen(poll: Poll, state: WholeState, id: string): boolean {
  const newest = poll.outlook.get('deployments')?.get(id)?.incoming
  const entity = newest ?? poll.storedEntities.get('deployments')?.get(id)
  if (!entity || entity.verified) return false
  const products = state.records.get('products')
  return entity.product === null || products === undefined || products.has(entity.product)
}

/** Applies one event of a known type to the poll; the last event of an entity counts. */
export function observeEvent(poll: Poll, event: RegistryChange): void {
  const { resource, id, incoming } = event
  if (resource === null) return
  const before = poll.outlook.get(resource)?.get(id)
  const wasOpen = isOpen(poll, resource, id)
  const seen = { source: 'feed', first: false, inferred: before?.inferred === true && wasOpen } as const
  if (incoming) {
    const returned = before?.returned === true || (before !== undefined && !wasOpen && wasHeld(poll, resource, id))
    tell(poll, resource, id, { ...seen, first: before?.first === true, incoming, closedBy: null, returned })
    return
  }
  const closed = { ...seen, incoming: null, closedBy: 'deleted', returned: before?.returned === true }
  if (wasOpen || before?.closedBy === 'cascade') tell(poll, resource, id, closed)
  if (resource === 'products') cascade(poll, id)
}

const wasHeld = (poll: Poll, resource: string, id: string): boolean =>
  poll.storedEntities.get(resource)?.get(id)?.open === true

/** Removes the deployments of a removed product. */
function cascade(poll: Poll, product: string): void {
  const outlooks = poll.outlook.get('deployments')
  for (const id of openIds(poll, 'deployments').toArray()) {
    const incoming = outlooks?.get(id)?.incoming
    const owner = incoming ? incoming.product : poll.storedEntities.get('deployments')?.get(id)?.product
    if (owner !== product) continue
    const seen = { source: 'feed', first: false, inferred: false } as const
    const returned = outlooks?.get(id)?.returned === true
    tell(poll, 'deployments', id, { ...seen, incoming: null, closedBy: 'cascade', returned })
  }
}

/** An entity whose stored text is needed. */
export interface EntityName {
  readonly resource: string
  readonly id: string
}

/** Lists the entities whose stored texts are needed to fold the poll. */
export function suspects(poll: Poll): EntityName[] {
  const names: EntityName[] = []
  const bare = new Set<string>()
  for (const [resource, outlooks] of poll.outlook)
    for (const [id, { incoming }] of outlooks) {
      const entity = poll.storedEntities.get(resource)?.get(id)
      if (entity?.open && entity.hash !== incoming?.hash) names.push({ resource, id })
      if (incoming?.bare === true) bare.add(id)
    }
  if (bare.size > 0)
    for (const { id, open, product } of poll.storedEntities.get('deployments')?.values() ?? [])
      if (open && product !== null && bare.has(product)) names.push({ resource: 'deployments', id })
  return names
}

/** Lists the entities whose texts a dated table needs in addition to those in the poll. */
export function findUnseen(poll: Poll): EntityName[] {
  return [...poll.storedEntities].flatMap(([resource, entities]) => {
    const outlooks = poll.outlook.get(resource)
    const untold = ({ id, open }: StoredEntity): boolean =>
      open && (outlooks?.get(id)?.incoming?.bare ?? !outlooks?.has(id))
    return [...entities.values()].filter(untold).map(({ id }) => ({ resource, id }))
  })
}

/** A step of a record's history: a version that begins (`op`) or ends (`closedBy`). */
export interface HistoryStep {
  /** The resource, or the table of embedded rows. */
  readonly table: string
  readonly id: string
  /** The beginning of the version, such as `created` or `updated`; null if one ends. */
  readonly op: string | null
  /** The end of the version; null if one begins. */
  readonly closedBy: string | null
  /** Whether the step follows from a whole state instead of an event. */
  readonly inferred: boolean
  /** The source that showed it, such as `snapshot`. */
  readonly source: string
  /** The record of a version that begins, as JSON text; null if one ends. */
  readonly text: string | null
  /** The hash of that text; null if a version ends. */
  readonly hash: string | null
  /** The typed columns of the record; null if a version ends, and for embedded tables. */
  readonly fields: TypedFields | null
  /** The row and its key, for embedded tables; null otherwise. */
  readonly child: EmbeddedRow | null
}

/** Kinds of contradictions that a verify finds. */
export const verifyKinds = [
  'lost_event',
  'wrong_retirement',
  'silent_change',
  'address_disagrees',
  'list_disagrees',
] as const

/** A kind of contradiction that a verify finds. */
export type VerifyKind = (typeof verifyKinds)[number]

/** A contradiction about one record. */
export interface RecordFinding {
  readonly kind: 'returned' | 'embedded_disagrees' | VerifyKind
  readonly resource: string
  readonly id: string
  /** Description in words. */
  readonly detail: string
  /** The stored record that is contradicted, as JSON text; null if there is none. */
  readonly held?: string | null
  /** The provider's record that contradicts it, as JSON text; null if there is none. */
  readonly offered?: string | null
}

/** A key that was never seen before, a value that no document lists, or a member of a different type than before. */
export type SchemaChange = {
  readonly resource: string
  /** The key, or the member. */
  readonly path: string
  /** Whether the first snapshot showed it. */
  readonly initial: boolean
  readonly kind: 'key' | 'value' | 'type'
  /** The value, or both types; null for a key. */
  readonly value: string | null
}

/** A record to which keys were added; that makes no version. */
export type AbsorbedRecord = EntityName & Pick<Incoming, 'text' | 'hash'>

/** The results of a poll other than its steps. */
export interface FoldedPoll {
  readonly absorbed: readonly AbsorbedRecord[]
  readonly newKeys: readonly SchemaChange[]
  readonly findings: readonly RecordFinding[]
}

/** Stored texts and known keys, for folding a poll. */
export interface Memory {
  readonly resources: Resources
  readonly texts: (resource: string, id: string) => StoredTexts | undefined
  /** Known keys by resource; the poll adds new ones. */
  readonly keys: Map<string, KnownKeys>
}

/** Time of keys that this poll shows for the first time: later than any stored text. */
const latest = Number.POSITIVE_INFINITY

/**
 * Computes the steps of history that lead from the stored state to that of the poll, and passes them on one by one: by
 * resource and id, a record before its embedded rows. Idempotent: repeating a poll on its own result gives no steps.
 * Additive keys and the order of keys make no versions.
 */
export function fold(poll: Poll, memory: Memory, onStep: (step: HistoryStep) => void): FoldedPoll {
  const sink: Sink = { poll, memory, onStep, absorbed: [], newKeys: [], findings: [], ofProduct: null }
  for (const resource of memory.resources.values())
    for (const [id, outlook] of sorted(poll.outlook.get(resource.name))) foldOne(sink, resource, id, outlook)
  const { absorbed, newKeys, findings } = sink
  return { absorbed, newKeys, findings }
}

function sorted<T>(byId: ReadonlyMap<string, T> | undefined): [string, T][] {
  return [...(byId ?? [])].toSorted(([a], [b]) => (a < b ? -1 : 1))
}

/** A poll that is being folded. */
interface Sink extends FoldedPoll {
  readonly absorbed: AbsorbedRecord[]
  readonly newKeys: SchemaChange[]
  readonly findings: RecordFinding[]
  readonly poll: Poll
  readonly memory: Memory
  readonly onStep: (step: HistoryStep) => void
  /** Deployments by the end of the poll, by product; made when first needed. */
  ofProduct: ReadonlyMap<string, readonly Deployment[]> | null
}

type Deployment = Pick<Incoming, 'id' | 'text' | 'product'>

function foldOne(sink: Sink, resource: Resource, id: string, outlook: Outlook): void {
  const { name } = resource
  const stored = sink.poll.storedEntities.get(name)?.get(id)
  const incoming = outlook.incoming?.bare === true ? dressed(sink, outlook.incoming) : outlook.incoming
  const step = { table: name, id, inferred: outlook.inferred, source: outlook.source, child: null }
  if (!incoming) {
    if (!stored?.open) return
    const nothing = { op: null, text: null, hash: null, fields: null }
    const closing = { ...step, ...nothing, closedBy: outlook.closedBy }
    sink.onStep(closing)
    childSteps(sink, resource, id, null, closing)
    return
  }
  if (outlook.returned || stored?.open === false)
    sink.findings.push({ kind: 'returned', resource: name, id, detail: 'an id that was removed came back' })
  if (stored?.open && stored.hash === incoming.hash) return
  const record = JSON.parse(incoming.text) as Fields
  learn(sink, resource, record, outlook.first)
  if (stored?.open && isUnchanged(sink, resource, stored, incoming, record)) return
  const op = stored?.open ? 'updated' : outlook.first ? outlook.source : 'created'
  const { text, hash } = incoming
  const opening = { ...step, op, closedBy: null, text, hash, fields: typedFields(resource, record) }
  sink.onStep(opening)
  childSteps(sink, resource, id, record, opening)
}

function learn({ memory, newKeys }: Sink, resource: Resource, record: Fields, initial: boolean): void {
  let keys = memory.keys.get(resource.name)
  if (!keys) memory.keys.set(resource.name, (keys = noKeys()))
  const change = { resource: resource.name, initial }
  learnKeys(keys, record, latest, (path) => newKeys.push({ ...change, path, kind: 'key', value: null }))
  for (const path in resource.fields) {
    const field = resource.fields[path]
    if (!field || field.values.length === 0) continue
    const value = fieldText(field, record)
    if (value === null || field.values.includes(value)) continue
    tellOnce(keys, newKeys, { ...change, path, kind: 'value', value })
  }
}

function tellOnce({ reportedChanges }: KnownKeys, changes: SchemaChange[], change: SchemaChange): void {
  const line = changeLine(change.kind, change.path, change.value)
  if (reportedChanges.has(line)) return
  reportedChanges.add(line)
  changes.push(change)
}

/** Reports members that changed between a plain value and an object or array; null has no type. */
function tellTypes({ newKeys }: Sink, { name }: Resource, keys: KnownKeys, stored: Fields, record: Fields): void {
  for (const path in record) {
    const before = typeOf(stored[path])
    const now = typeOf(record[path])
    if (before === null || now === null || before === now) continue
    tellOnce(keys, newKeys, { resource: name, path, initial: false, kind: 'type', value: `${before} to ${now}` })
  }
}

function typeOf(value: Value | undefined): string | null {
  if (value === undefined || value === null) return null
  return Array.isArray(value) ? 'array' : typeof value
}

/** Whether nothing but the order of keys and additive keys differ; the latter are noted. */
function isUnchanged(
  sink: Sink,
  resource: Resource,
  stored: StoredEntity,
  incoming: Incoming,
  record: Fields,
): boolean {
  const { name } = resource
  const texts = sink.memory.texts(name, stored.id)
  const keys = sink.memory.keys.get(name)
  if (!texts || !keys) return false
  let grown = false
  const before = JSON.parse(texts.latest) as Fields
  tellTypes(sink, resource, keys, before, record)
  const same = isSameBut(keys, record, before, stored.at, () => (grown = true))
  if (same && grown) sink.absorbed.push({ resource: name, id: stored.id, text: incoming.text, hash: incoming.hash })
  return same
}

/** Adds to a product that was received without its deployments those that exist at the end of the poll. */
function dressed(sink: Sink, product: Incoming): Incoming {
  sink.ofProduct ??= deploymentsByProduct(sink)
  const found = sink.ofProduct.get(product.id) ?? []
  const record = { ...(JSON.parse(product.text) as Fields), deployments: embedDeployments(found) }
  const text = recordJson(record)
  return { ...product, text, hash: textHash(text), bare: false }
}

function deploymentsByProduct({ poll, memory }: Sink): ReadonlyMap<string, readonly Deployment[]> {
  const outlooks = poll.outlook.get('deployments')
  const now = [...(outlooks?.values() ?? [])].flatMap(({ incoming }) => incoming ?? [])
  const storedDeployments = [...(poll.storedEntities.get('deployments')?.values() ?? [])].flatMap(
    ({ id, open, product }) => {
      const text = open && !outlooks?.has(id) ? memory.texts('deployments', id)?.latest : undefined
      return text === undefined ? [] : [{ id, product, text }]
    },
  )
  const owned = [...now, ...storedDeployments].filter(({ product }) => product !== null)
  return Map.groupBy<string, Deployment>(owned, ({ product }) => product ?? '')
}

/** Emits the steps of embedded rows, which follow the versions of their parent. */
function childSteps(sink: Sink, resource: Resource, id: string, now: Fields | null, parent: HistoryStep): void {
  const places = Object.keys(resource.embeds)
  if (places.length === 0) return
  const text = sink.memory.texts(resource.name, id)?.version
  const storedFields = text === undefined ? null : (JSON.parse(text) as Fields)
  if (storedFields && now && places.every((key) => isSame(now[key] ?? null, storedFields[key] ?? null))) return
  const before = new Map((storedFields ? childrenOf(resource, storedFields) : []).map((child) => [child.id, child]))
  const after = new Map((now ? childrenOf(resource, now) : []).map((child) => [child.id, child]))
  const { inferred, source } = parent
  const frame = { inferred, source, hash: null, fields: null }
  const closedBy = parent.closedBy ?? 'updated'
  for (const [name, child] of before)
    if (!after.has(name)) sink.onStep({ ...frame, table: child.table, id: name, op: null, closedBy, text: null, child })
  const op = parent.op === 'updated' ? 'created' : parent.op
  for (const [name, child] of after)
    if (!before.has(name))
      sink.onStep({ ...frame, table: child.table, id: name, op, closedBy: null, text: child.text, child })
}
