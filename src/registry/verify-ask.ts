import type { Resource } from '../catalog/catalogue.ts'
import { detailAsk, listAsk } from './api.ts'
import { askRegistry, type Got, type RegistryAsking, type Stopped } from './asking.ts'
import { type ListPage, readDetail, readList, type Read } from './bodies.ts'
import { readPages, roomOf } from './reading.ts'
import { type Incoming, readRecord } from './record.ts'
import { type Check, listAddress, type ListCheck, type Seen } from './verify-plan.ts'

/** What an address says now; `unchanged` where that is what it said when it was last found as held. */
export interface Told<T> {
  readonly kind: 'told'
  readonly value: T | 'unchanged'
  readonly etag: string | null
}

/** What a record's own address says; null: nothing is there. */
export type OwnTold = Told<Incoming | null> | Stopped

/** What a list shows, by id; `refused` where the provider does not take that filter or its value. */
export type ListTold = Told<ReadonlyMap<string, Incoming>> | { readonly kind: 'refused' } | Stopped

/** Stands for the body of an answer that says that nothing changed. */
const unchanged = new Uint8Array(1)

type MaybeUnchanged<T> = { readonly unchanged: true } | { readonly unchanged: false; readonly value: T }

function unless<T>(read: (bytes: Uint8Array) => Read<T>): (bytes: Uint8Array) => Read<MaybeUnchanged<T>> {
  return (bytes) => {
    if (bytes === unchanged) return { ok: true, value: { unchanged: true } }
    const got = read(bytes)
    return got.ok ? { ok: true, value: { unchanged: false, value: got.value } } : got
  }
}

/** The asking with the entity tag of what was found as held before, while the lake still holds the same. */
function tagged(
  asking: RegistryAsking,
  seen: ReadonlyMap<string, Seen>,
  { address, digest }: Pick<Check, 'address' | 'digest'>,
): RegistryAsking {
  const known = seen.get(address)
  const etag = known?.digest === digest ? known.etag : null
  const held = etag === null ? undefined : { etag, read: async () => await Promise.resolve(unchanged) }
  return { ...asking, held: () => held }
}

/** Asks a record's own address. */
export async function askOwn(
  asking: RegistryAsking,
  { resource, id }: { readonly resource: Resource; readonly id: string },
  known?: { readonly seen: ReadonlyMap<string, Seen>; readonly check: Check },
): Promise<OwnTold> {
  const own = known === undefined ? bare(asking) : tagged(asking, known.seen, known.check)
  const got = await askRegistry(
    own,
    detailAsk(resource.path, id),
    unless((bytes) => readDetail(bytes, resource)),
  )
  if (got.kind === 'stopped') return got
  if (got.kind === 'gone') return { kind: 'told', value: null, etag: null }
  if (got.kind !== 'read') return failed(`${resource.path}/${id}: ${got.words}`)
  const { value, raw } = got
  if (!value.unchanged && value.value.id !== id)
    return failed(`${resource.path}/${id}: a record with the id ${value.value.id}`)
  return { kind: 'told', value: value.unchanged ? 'unchanged' : value.value, etag: raw.etag }
}

/** The asking without any entity tag: the body is wanted. */
function bare(asking: RegistryAsking): RegistryAsking {
  return { ...asking, held: () => undefined }
}

/** Reads a whole list; only one of a single page can be known by its tag. */
export async function askList(
  asking: RegistryAsking,
  check: Pick<ListCheck, 'resource' | 'filters'>,
  pageLimit: number,
  known?: { readonly seen: ReadonlyMap<string, Seen>; readonly check: Check },
): Promise<ListTold> {
  const { resource, filters } = check
  const own = known === undefined ? bare(asking) : tagged(asking, known.seen, known.check)
  const first: Got<MaybeUnchanged<ListPage>> = await askRegistry(
    own,
    listAsk(resource.path, null, pageLimit, filters),
    unless((bytes) => readList(bytes, resource)),
  )
  if (first.kind === 'stopped') return first
  if (first.kind === 'refused') return { kind: 'refused' }
  if (first.kind !== 'read') return failed(`${listAddress(resource, filters)}: ${first.words}`)
  if (first.value.unchanged) return { kind: 'told', value: 'unchanged', etag: first.raw.etag }
  const page = { ...first, value: first.value.value }
  const read = await readPages(bare(asking), { resource, filters, pageLimit }, roomOf(asking), page)
  if (read.kind === 'stopped') return read
  const shown = read.records.map((record) => readRecord(resource, record))
  const etag = read.raws.length === 1 ? first.raw.etag : null
  return { kind: 'told', value: new Map(shown.map((incoming) => [incoming.id, incoming])), etag }
}

/** An address that gave no usable answer. */
function failed(words: string): Stopped {
  return { kind: 'stopped', by: 'failed', until: null, words }
}
