/** The kinds of entity that the feed speaks of, in the order of the document, which does not list the last one. */
export const entityTypes = ['issuer', 'asset', 'product', 'deployment', 'venue', 'derivative', 'committee'] as const
export type EntityType = (typeof entityTypes)[number]

/** Record as the registry keeps it, without the parts that are embedded on reading. */
export type EntityRow = Readonly<Record<string, unknown>>

/** Names one entity: its type and its id. */
export type Ref = readonly [type: EntityType, id: string]

/** One change of an audit row: the new row, or null for a removal. */
export interface RowChange {
  readonly type: EntityType
  readonly id: string
  readonly row: EntityRow | null
}

/** One version of an entity. */
interface Version {
  /** The entry of the log that wrote it, from 1. */
  readonly seq: number
  /** Null after a removal. */
  readonly row: EntityRow | null
}

/** Entry of the audit log: its time, and the entities that readers must see (none: an internal entry). */
export interface LogEntry {
  readonly seq: number
  readonly at: number
  readonly touched: readonly Ref[]
}

/** The audit log and every version of every entity; readable as of any entry of the log. */
export interface Store {
  /** Entries in the order of writing. */
  readonly audit: LogEntry[]
  /** The versions of each entity, by type and id, oldest first. */
  readonly entities: Map<EntityType, Map<string, Version[]>>
  /** Ids of the deployments that a product ever had, in id order. */
  readonly deploymentsOf: Map<string, string[]>
  /** Ids of each type, in order; of a type to which one was added since, out of date. */
  readonly sorted: Map<EntityType, readonly string[]>
}

/** Creates an empty registry. */
export function createStore(): Store {
  return {
    audit: [],
    entities: new Map(entityTypes.map((type) => [type, new Map<string, Version[]>()])),
    deploymentsOf: new Map<string, string[]>(),
    sorted: new Map<EntityType, readonly string[]>(),
  }
}

/**
 * Appends one audit row with its changes; `also` names entities whose embedded data they change.
 * A changed deployment always touches its product.
 */
export function write(store: Store, at: number, changes: readonly RowChange[], also: readonly Ref[] = []): void {
  const seq = store.audit.length + 1
  const touched: Ref[] = []
  const touch = (ref: Ref): void => {
    if (!touched.some(([type, id]) => type === ref[0] && id === ref[1])) touched.push(ref)
  }
  for (const { type, id, row } of changes) {
    const versions = table(store, type)
    const before = versions.get(id)
    if (before) before.push({ seq, row })
    else versions.set(id, [{ seq, row }])
    touch([type, id])
    const product = type === 'deployment' ? productOf(store, id, row) : undefined
    if (product === undefined) continue
    if (!before) register(store, product, id)
    touch(['product', product])
  }
  for (const ref of also) touch(ref)
  store.audit.push({ seq, at, touched })
}

/** Finds the row of an entity as of an entry of the log; undefined before its creation and after its removal. */
export function rowAt(store: Store, type: EntityType, id: string, seq: number): EntityRow | undefined {
  const versions = table(store, type).get(id)
  if (!versions) return undefined
  for (let i = versions.length - 1; i >= 0; i--) {
    const version = versions[i] as Version
    if (version.seq <= seq) return version.row ?? undefined
  }
  return undefined
}

/** Finds the newest row of an entity. */
export function rowNow(store: Store, type: EntityType, id: string): EntityRow | undefined {
  return rowAt(store, type, id, Number.POSITIVE_INFINITY)
}

/** Finds the last row that an entity had before its removal. */
export function lastRow(store: Store, type: EntityType, id: string): EntityRow | undefined {
  const version = table(store, type)
    .get(id)
    ?.findLast(({ row }) => row !== null)
  return version?.row ?? undefined
}

/** Finds the entry of the log that created the entity; undefined for one that never existed. */
export function createdSeq(store: Store, type: EntityType, id: string): number | undefined {
  return table(store, type).get(id)?.[0]?.seq
}

/** Lists every id that a type ever had, in order. */
export function idsOf(store: Store, type: EntityType): readonly string[] {
  const versions = table(store, type)
  const sorted = store.sorted.get(type)
  if (sorted?.length === versions.size) return sorted
  const ids = [...versions.keys()].sort()
  store.sorted.set(type, ids)
  return ids
}

/** Finds the number of the last entry at or before the instant; 0 if there is none. */
export function seqAt(store: Store, at: number): number {
  return firstFrom(store.audit.length, (n) => (store.audit[n] as LogEntry).at > at)
}

/**
 * Finds the first of so many numbers for which `holds` is true, if it stays true for all that follow; their count if it
 * never is.
 */
export function firstFrom(count: number, holds: (n: number) => boolean): number {
  let low = 0
  let high = count
  while (low < high) {
    const middle = (low + high) >>> 1
    if (holds(middle)) high = middle
    else low = middle + 1
  }
  return low
}

function table(store: Store, type: EntityType): Map<string, Version[]> {
  return store.entities.get(type) as Map<string, Version[]>
}

function productOf(store: Store, id: string, row: EntityRow | null): string | undefined {
  const lastKnown = row ?? lastRow(store, 'deployment', id)
  return lastKnown?.['product_id'] as string | undefined
}

function register(store: Store, product: string, deployment: string): void {
  const ids = store.deploymentsOf.get(product)
  if (!ids) store.deploymentsOf.set(product, [deployment])
  else {
    ids.push(deployment)
    ids.sort()
  }
}
