import type { Resource } from '../../catalog/catalogue.ts'
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
import {
  type Check,
  type Holding,
  isShown,
  listAddress,
  narrowestList,
  type Seen,
  stateOf,
  type ListCheck,
  type RecordCheck,
} from './verify-plan.ts'
import { differingMembers, type KnownKeys, lifeOf } from './keys.ts'
import { readTexts } from './status.ts'
import type { StoredTexts, RecordFinding } from './history.ts'
import type { Ledger } from '../../lake/ledger/ledger.ts'
import type { WithEngine } from './staging.ts'

/** The present answer of an address; `unchanged` if it equals the answer that last agreed with the lake. */
interface SaidNow<T> {
  readonly kind: 'said'
  readonly value: T | 'unchanged'
  readonly etag: string | null
}

/** The present answer of a record's own address; null if it has no record. */
type OwnNow = SaidNow<Incoming | null> | Stopped

/**
 * The present contents of a list, by id; `refused` if the provider does not accept the filter or its value, `ignored`
 * if it ignores filters.
 */
type ListNow =
  | SaidNow<ReadonlyMap<string, Incoming>>
  | { readonly kind: 'refused' }
  | { readonly kind: 'ignored' }
  | Stopped

/** A check, with the answers that last agreed with the lake. */
interface Known {
  readonly seen: ReadonlyMap<string, Seen>
  readonly check: Check
}

/**
 * Adds the entity tag of the answer that last agreed with the lake, if the stored records have not changed since;
 * otherwise no tag, because the body is needed.
 */
function tagged(asking: RegistryAsking, storedAnswer?: Known): RegistryAsking {
  const before = storedAnswer?.seen.get(storedAnswer.check.address)
  const etag = before?.digest === storedAnswer?.check.digest ? (before?.etag ?? null) : null
  return { ...asking, storedAnswer: () => (etag === null ? undefined : { etag }) }
}

/** Requests a record from its own address. */
export async function askOwn(
  asking: RegistryAsking,
  { resource, id }: { readonly resource: Resource; readonly id: string },
  keys?: Known,
): Promise<OwnNow> {
  const ask = detailAsk(resource.path, id)
  const got = await askRegistry(tagged(asking, keys), ask, (bytes) => readDetail(bytes, resource))
  if (got.kind === 'stopped') return got
  if (got.kind === 'gone') return { kind: 'said', value: null, etag: null }
  if (got.kind === 'unchanged') return { kind: 'said', value: 'unchanged', etag: got.etag }
  if (got.kind !== 'read') return stop('failed', `${resource.path}/${id}: ${got.words}`)
  const { value, raw } = got
  if (value.id !== id) return stop('failed', `${resource.path}/${id}: a record with the id ${value.id}`)
  return { kind: 'said', value, etag: raw.etag }
}

/**
 * Number of records on the first page that a filter should have excluded, from which on the filter counts as ignored; a
 * single one is a contradiction.
 */
const fewStrangers = 2

/** Whether a record matches the filters by its own fields, and with `verified` may be in a list at all. */
function meets(resource: Resource, filters: Filters, { text }: Incoming, verified = true): boolean {
  const record = JSON.parse(text) as Fields
  return isShown(resource, filters, verified, (field) => fieldText(resource.fields[field], record))
}

/** Reads a whole list; only one of a single page can be known by its tag. */
export async function askList(
  asking: RegistryAsking,
  check: Pick<ListCheck, 'resource' | 'filters'>,
  pageLimit: number,
  keys?: Known,
): Promise<ListNow> {
  const { resource, filters } = check
  const ask = listAsk(resource.path, null, pageLimit, filters)
  const first = await askRegistry(tagged(asking, keys), ask, (bytes) => readList(bytes, resource))
  if (first.kind === 'stopped') return first
  if (first.kind === 'refused') return { kind: 'refused' }
  if (first.kind === 'unchanged') return { kind: 'said', value: 'unchanged', etag: first.etag }
  if (first.kind !== 'read') return stop('failed', `${listAddress(resource, filters)}: ${first.words}`)
  const strangers = first.value.records.filter((record) => !meets(resource, filters, readRecord(resource, record)))
  if (keys !== undefined && strangers.length >= fewStrangers) return { kind: 'ignored' }
  const read = await readPages(tagged(asking), { resource, filters, pageLimit }, roomOf(asking), first)
  if (read.kind === 'stopped') return read
  const shown = read.records.map((record) => readRecord(resource, record))
  const etag = read.raws.length === 1 ? first.raw.etag : null
  return { kind: 'said', value: new Map(shown.map((incoming) => [incoming.id, incoming])), etag }
}

/** A contradiction that a check found, and the state of the stored record then. */
export interface Suspect extends RecordFinding {
  readonly check: Check
  /** The address whose answer contradicts the lake. */
  readonly address: string
  /** Text that represents the stored record; equal as long as it does not change. */
  readonly state: string
}

/** The result of a check that was answered. */
export interface CheckResult {
  readonly kind: 'compared'
  /** Contradictions between the answer and the lake. */
  readonly suspects: readonly Suspect[]
  /** The entity tag of an answer that contradicts nothing; null if it has none, or contradicts something. */
  readonly etag: string | null
  /**
   * Whether the answer decides nothing: the record may be missing, or the provider does not accept, or ignores, the
   * filter.
   */
  readonly untold: boolean
}

/** The dependencies of comparing checks. */
export interface Comparing {
  readonly ledger: Ledger
  readonly withEngine: WithEngine
  readonly asking: RegistryAsking
  readonly holding: Holding
  readonly keys: ReadonlyMap<string, KnownKeys>
  /** Filters that the provider ignores, such as `issuers?country`. */
  readonly ignored: Set<string>
  /** Whether as many requests were sent as may be. */
  readonly isSpent: () => boolean
}

/** A record as an address shows it; null if it is not there. */
interface Shown {
  readonly resource: Resource
  readonly id: string
  readonly incoming: Incoming | null
}

/** Maximum number of contradictions of one list that are examined one by one; the next run continues. */
const mostOfList = 50

/** Repeats the request for one address and compares the answer. */
export async function compareCheck(comparing: Comparing, check: Check): Promise<CheckResult | Stopped> {
  return check.kind === 'record' ? await compareRecord(comparing, check) : await compareList(comparing, check)
}

async function compareRecord(comparing: Comparing, check: RecordCheck): Promise<CheckResult | Stopped> {
  const { asking, holding } = comparing
  const answer = await askOwn(asking, check, { seen: holding.seenLists, check })
  if (answer.kind === 'stopped') return answer
  if (answer.value === 'unchanged') return comparedTo([], answer.etag)
  const shownRecord = { resource: check.resource, id: check.id, incoming: answer.value }
  const judged = await judge(comparing, shownRecord)
  if (judged === null) return comparedTo([], answer.etag)
  const suspect = { ...judged, check, address: check.address }
  if (answer.value !== null || storedEntity(comparing, shownRecord)?.open !== true) return comparedTo([suspect])
  // The list of deployments publishes verified ones only; whether others have an address is not documented.
  if (check.resource.name === 'deployments' && storedEntity(comparing, shownRecord)?.verified === false) return untold
  const list = narrowestList(check.resource, check.id, holding)
  const listed = await askList(asking, list, holding.pageLimit)
  if (listed.kind === 'stopped') return listed
  if (listed.kind === 'refused' || listed.kind === 'ignored') return untold
  const still = listed.value === 'unchanged' ? undefined : listed.value.get(check.id)
  if (!still) return comparedTo([suspect])
  const detail = `${check.address} has it not, ${list.address} lists it`
  return comparedTo([{ ...suspect, kind: 'address_disagrees', detail, offered: still.text }])
}

const untold: CheckResult = { kind: 'compared', suspects: [], etag: null, untold: true }

type Judged = RecordFinding & { readonly state: string }

function comparedTo(suspects: readonly Suspect[], etag: string | null = null): CheckResult {
  return { kind: 'compared' as const, suspects, etag: suspects.length === 0 ? etag : null, untold: false }
}

function storedEntity({ holding }: Comparing, { resource, id }: Pick<Shown, 'resource' | 'id'>) {
  return holding.storedEntities.get(resource.name)?.get(id)
}

/** Compares one record of the lake with the answer of an address; null if they agree. */
async function judge(comparing: Comparing, shownRecord: Shown): Promise<Judged | null> {
  const { resource, id, incoming } = shownRecord
  const entity = storedEntity(comparing, shownRecord)
  const state = stateOf(entity)
  const offered = incoming?.text ?? null
  const finding = { resource: resource.name, id, offered, state }
  if (entity?.open !== true) {
    if (offered === null) return null
    return entity
      ? { ...finding, kind: 'wrong_retirement', detail: 'removed here, there upstream', held: null }
      : { ...finding, kind: 'lost_event', detail: 'not held here, there upstream', held: null }
  }
  if (incoming?.hash === entity.hash) return null
  const text = (await textsOf(comparing, shownRecord))?.latest ?? 'null'
  const same = { ...finding, held: text }
  if (incoming === null) return { ...same, kind: 'lost_event', detail: 'held here, gone upstream' }
  const record = JSON.parse(text) as Fields
  const now = JSON.parse(incoming.text) as Fields
  const keys = comparing.keys.get(resource.name)
  const members = differingMembers(resource, { record, at: entity.at, keys }, now)
  if (members.length === 0) return null
  const was = lifeOf(record)
  const is = lifeOf(now)
  const turned = was !== null && is !== null && was.retired !== is.retired
  const kind = turned ? (was.retired ? 'wrong_retirement' : 'lost_event') : 'silent_change'
  const life = turned ? `${was.status} here, ${is.status} upstream; ` : ''
  return { ...same, kind, detail: `${life}differs in ${members.join(', ')}` }
}

async function textsOf({ ledger, withEngine }: Comparing, { resource, id }: Shown): Promise<StoredTexts | undefined> {
  const texts = await withEngine(async (engine) => await readTexts(ledger, engine, [{ resource: resource.name, id }]))
  return texts(resource.name, id)
}

async function compareList(comparing: Comparing, check: ListCheck): Promise<CheckResult | Stopped> {
  const { asking, holding } = comparing
  const { resource, filters } = check
  const names = Object.keys(filters).map((filter) => `${resource.name}?${filter}`)
  if (names.some((name) => comparing.ignored.has(name))) return untold
  const answer = await askList(asking, check, holding.pageLimit, { seen: holding.seenLists, check })
  if (answer.kind === 'stopped') return answer
  if (answer.kind === 'ignored') for (const name of names) comparing.ignored.add(name)
  if (answer.kind === 'refused' || answer.kind === 'ignored') return untold
  if (answer.value === 'unchanged') return comparedTo([], answer.etag)
  const shownRecords = answer.value
  const absent = [...check.expected].filter((id) => !shownRecords.has(id))
  const odd = [...shownRecords.values()].filter((incoming) => !isAsHeld(comparing, check, incoming)).map(({ id }) => id)
  const suspects: Suspect[] = []
  for (const id of [...absent, ...odd].slice(0, mostOfList)) {
    // The first one is examined in any case, because the list differs from the lake.
    if (suspects.length > 0 && comparing.isSpent()) break
    const found = await explain(comparing, check, { resource, id, incoming: shownRecords.get(id) ?? null })
    if (found?.kind === 'stopped') return found
    if (found) suspects.push(found)
  }
  return comparedTo(suspects, answer.etag)
}

/** Whether a record of a list equals the stored one, and belongs in the list. */
function isAsHeld(comparing: Comparing, { resource, filters, expected }: ListCheck, incoming: Incoming): boolean {
  const entity = storedEntity(comparing, { resource, id: incoming.id })
  if (entity?.open !== true || entity.hash !== incoming.hash) return false
  return expected.has(incoming.id) || fits(resource, filters, incoming)
}

function fits(resource: Resource, filters: Filters, incoming: Incoming): boolean {
  return meets(resource, filters, incoming, incoming.verified)
}

/** Finds the cause of an unexpected record in a list: its own address decides, or the whole list if it has none. */
async function explain(comparing: Comparing, check: ListCheck, shownRecord: Shown): Promise<Suspect | Stopped | null> {
  const { resource, id } = shownRecord
  const ownAnswer = await ownWord(comparing, check, shownRecord)
  if (ownAnswer.kind === 'stopped') return ownAnswer
  const judged = await judge(comparing, { ...shownRecord, incoming: ownAnswer.incoming })
  const lists = await judge(comparing, shownRecord)
  const state = stateOf(storedEntity(comparing, shownRecord))
  const text = (await textsOf(comparing, shownRecord))?.latest ?? null
  const both = { resource: resource.name, id, held: text, offered: shownRecord.incoming?.text ?? null, state }
  if (ownAnswer.incoming === null && shownRecord.incoming !== null) {
    const detail = `${ownAnswer.address} has it not, ${check.address} lists it`
    return { ...both, kind: 'address_disagrees', detail, check, address: ownAnswer.address }
  }
  if (judged !== null) return { ...judged, check, address: ownAnswer.address }
  if (shownRecord.incoming !== null && lists === null && fits(resource, check.filters, shownRecord.incoming))
    return null
  const detail =
    shownRecord.incoming === null
      ? `left out of ${check.address}, though ${ownAnswer.address} gives it`
      : lists === null
        ? `shown in ${check.address}, where it does not belong`
        : `${check.address} and ${ownAnswer.address} show two records; ${lists.detail}`
  return { ...both, kind: 'list_disagrees', detail, check, address: check.address }
}

/** Requests a record from its own address, or from the whole list if the resource has no addresses. */
async function ownWord(
  { asking, holding }: Comparing,
  check: ListCheck,
  { resource, id, incoming }: Shown,
): Promise<{ readonly kind: 'own'; readonly incoming: Incoming | null; readonly address: string } | Stopped> {
  if (resource.detail) {
    const answer = await askOwn(asking, { resource, id })
    if (answer.kind === 'stopped') return answer
    return {
      kind: 'own',
      incoming: answer.value === 'unchanged' ? null : answer.value,
      address: `${resource.path}/${id}`,
    }
  }
  if (Object.keys(check.filters).length === 0) return { kind: 'own', incoming, address: check.address }
  const whole = await askList(asking, { resource, filters: {} }, holding.pageLimit)
  if (whole.kind === 'stopped') return whole
  const found = whole.kind !== 'said' || whole.value === 'unchanged' ? undefined : whole.value.get(id)
  return { kind: 'own', incoming: found ?? null, address: listAddress(resource, {}) }
}
