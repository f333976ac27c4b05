import type { Resource } from '../catalog/catalogue.ts'
import {
  askRegistry,
  detailAsk,
  type Filters,
  listAsk,
  readPages,
  type RegistryAsking,
  roomOf,
  stop,
  type Stopped,
} from './reading.ts'
import { readDetail, readList } from './bodies.ts'
import type { Fields } from './json.ts'
import { fieldText, type Incoming, readRecord } from './record.ts'
import { type Check, isShown, listAddress, type ListCheck, type Seen } from './verify-plan.ts'

/** What an address says now; `unchanged` where that is what it said when it was last found as held. */
interface SaidNow<T> {
  readonly kind: 'said'
  readonly value: T | 'unchanged'
  readonly etag: string | null
}

/** What a record's own address says; null: nothing is there. */
type OwnNow = SaidNow<Incoming | null> | Stopped

/** What a list shows, by id; `refused` where the provider does not take that filter or its value, `ignored` where it heeds none. */
type ListNow =
  | SaidNow<ReadonlyMap<string, Incoming>>
  | { readonly kind: 'refused' }
  | { readonly kind: 'ignored' }
  | Stopped

/** A check, and what addresses said when they were last found as held. */
interface Known {
  readonly seen: ReadonlyMap<string, Seen>
  readonly check: Check
}

/**
 * The asking with the entity tag of what was found as held before, while the lake still holds the same; else without any:
 * the body is wanted.
 */
function tagged(asking: RegistryAsking, known?: Known): RegistryAsking {
  const before = known?.seen.get(known.check.address)
  const etag = before?.digest === known?.check.digest ? (before?.etag ?? null) : null
  return { ...asking, held: () => (etag === null ? undefined : { etag }) }
}

/** Asks a record's own address. */
export async function askOwn(
  asking: RegistryAsking,
  { resource, id }: { readonly resource: Resource; readonly id: string },
  known?: Known,
): Promise<OwnNow> {
  const ask = detailAsk(resource.path, id)
  const got = await askRegistry(tagged(asking, known), ask, (bytes) => readDetail(bytes, resource))
  if (got.kind === 'stopped') return got
  if (got.kind === 'gone') return { kind: 'said', value: null, etag: null }
  if (got.kind === 'unchanged') return { kind: 'said', value: 'unchanged', etag: got.etag }
  if (got.kind !== 'read') return stop('failed', `${resource.path}/${id}: ${got.words}`)
  const { value, raw } = got
  if (value.id !== id) return stop('failed', `${resource.path}/${id}: a record with the id ${value.id}`)
  return { kind: 'said', value, etag: raw.etag }
}

/** One record that a filter should have kept out is a contradiction; more of them on the first page, and it keeps nothing out. */
const fewStrangers = 2

/** Whether a record says of itself what the filters ask for; `verified`: and may be in a list at all. */
export function meets(resource: Resource, filters: Filters, { text }: Incoming, verified = true): boolean {
  const record = JSON.parse(text) as Fields
  return isShown(resource, filters, verified, (field) => fieldText(resource.fields[field], record))
}

/** Reads a whole list; only one of a single page can be known by its tag. */
export async function askList(
  asking: RegistryAsking,
  check: Pick<ListCheck, 'resource' | 'filters'>,
  pageLimit: number,
  known?: Known,
): Promise<ListNow> {
  const { resource, filters } = check
  const ask = listAsk(resource.path, null, pageLimit, filters)
  const first = await askRegistry(tagged(asking, known), ask, (bytes) => readList(bytes, resource))
  if (first.kind === 'stopped') return first
  if (first.kind === 'refused') return { kind: 'refused' }
  if (first.kind === 'unchanged') return { kind: 'said', value: 'unchanged', etag: first.etag }
  if (first.kind !== 'read') return stop('failed', `${listAddress(resource, filters)}: ${first.words}`)
  const strangers = first.value.records.filter((record) => !meets(resource, filters, readRecord(resource, record)))
  if (known !== undefined && strangers.length >= fewStrangers) return { kind: 'ignored' }
  const read = await readPages(tagged(asking), { resource, filters, pageLimit }, roomOf(asking), first)
  if (read.kind === 'stopped') return read
  const shown = read.records.map((record) => readRecord(resource, record))
  const etag = read.raws.length === 1 ? first.raw.etag : null
  return { kind: 'said', value: new Map(shown.map((incoming) => [incoming.id, incoming])), etag }
}
