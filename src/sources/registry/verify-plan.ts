import type { Resource } from '../../catalog/catalogue.ts'
import { affordable, inTurns, spentDaily, type VerifyLimits } from '../../lake/ledger/verify-rounds.ts'
import type { Micros } from '../../base/time.ts'
import { detailAsk, type Filters } from './reading.ts'
import { canBeAsked } from './json.ts'
import type { StoredEntities, StoredEntity } from './history.ts'
import { textHash } from './record.ts'

/** A check of the registry: a request for one record by its own address, or for one list. */
export type Check = RecordCheck | ListCheck

interface Common {
  readonly resource: Resource
  /** Path and filters, under which findings are remembered. */
  readonly address: string
  /** Text that represents the stored records; equal as long as they do not change. */
  readonly digest: string
  /** About how many requests it takes. */
  readonly requests: number
}

/** A record by its own address; one that is gone must be gone there, too. */
export interface RecordCheck extends Common {
  readonly kind: 'record'
  readonly id: string
}

/** A list, by one filter or by none. */
export interface ListCheck extends Common {
  readonly kind: 'list'
  readonly filters: Filters
  /** Ids that it must show, according to the lake. */
  readonly expected: ReadonlySet<string>
}

/**
 * The answer of an address that last agreed with the lake: its time, its entity tag, and the state of the stored
 * records.
 */
export interface Seen {
  readonly at: Micros
  readonly etag: string | null
  readonly digest: string
}

/** The contents of the lake from which checks are chosen. */
export interface Holding {
  readonly resources: readonly Resource[]
  readonly storedEntities: StoredEntities
  readonly seenLists: ReadonlyMap<string, Seen>
  /**
   * Time of the last request to each address, whatever its result, so that an address that never agrees delays no
   * others.
   */
  readonly tried: ReadonlyMap<string, Micros>
  readonly pageLimit: number
}

/**
 * Number of lists per filter that are enough if the filter selects single records, because such a list repeats the
 * record's own address.
 */
const fewLists = 3
/** A sample has no room for longer lists. */
const sampleShare = 0.2

/** Returns the filters of a resource whose field is known, with its name. */
export function filterFields({ fields, filters }: Resource): readonly (readonly [filter: string, field: string])[] {
  return filters.flatMap((filter) => {
    const found = Object.entries(fields).find(([name, { keys }]) => name === filter || keys.includes(filter))
    return found === undefined ? [] : [[filter, found[0]] as const]
  })
}

/**
 * Whether a list with these filters shows a record. The list of deployments publishes verified ones only, and filters
 * ignore case in some fields, which no list reveals. `valueOf` returns the record's value in the field of a filter,
 * whose position is also given.
 */
export function isShown(
  resource: Resource,
  filters: Filters,
  verified: boolean,
  valueOf: (field: string, place: number) => string | null | undefined,
): boolean {
  if (resource.name === 'deployments' && !verified) return false
  return filterFields(resource).every(([filter, field], place) => {
    const wanted = filters[filter]
    return wanted === undefined || valueOf(field, place)?.toLowerCase() === wanted.toLowerCase()
  })
}

/** Checks of one run. */
export interface ChosenChecks {
  readonly checks: readonly Check[]
  /** Number of checks that are possible. */
  readonly held: number
  /** Most requests that the run may send; null for no limit. */
  readonly budget: number | null
}

/**
 * Chooses checks within the budget (null for everything), in turn from the records and the lists of each resource:
 * those never requested or longest ago first. What has agreed since `begun` is done.
 */
export function chooseChecks(
  holding: Holding,
  { begun, ...limits }: VerifyLimits & { readonly begun: Micros },
): ChosenChecks {
  const possible = holding.resources.flatMap((resource) => [
    recordChecks(resource, holding),
    listChecks(resource, holding),
  ])
  const whole = possible.flat().reduce((sum, { requests }) => sum + requests, 0)
  const budget = spentDaily(whole, limits)
  const queues = possible.map((all) => {
    const small = all.filter(({ requests }) => budget === null || requests <= Math.max(1, sampleShare * budget))
    return byAge(small, holding, begun)
  })
  const inOrder = inTurns(queues).flatMap((turn) => turn)
  const checks = affordable(inOrder, ({ requests }) => requests, { budget, stops: false })
  return { checks, held: possible.flat().length, budget }
}

/** Orders checks: those never requested or longest ago first; those of one age independently of their ids. */
function byAge(
  checks: readonly Check[],
  { seenLists: seen, tried }: Pick<Holding, 'seenLists' | 'tried'>,
  begun: Micros,
): Check[] {
  const ages = checks.flatMap((check) => {
    const found = seen.get(check.address)?.at ?? 0
    const triedAt = tried.get(check.address) ?? 0
    // A contradiction at the very time at which this round began belongs to the round before.
    const isDone = found >= begun || triedAt > begun
    return isDone ? [] : [{ check, at: Math.max(found, triedAt), place: textHash(check.address) }]
  })
  return ages.toSorted((a, b) => a.at - b.at || (a.place < b.place ? -1 : 1)).map(({ check }) => check)
}

function recordChecks(resource: Resource, { storedEntities }: Holding): RecordCheck[] {
  if (!resource.detail) return []
  return [...(storedEntities.get(resource.name)?.values() ?? [])].flatMap((entity): RecordCheck[] => {
    const { id } = entity
    if (!canBeAsked(id)) return []
    const address = detailAsk(resource.path, id).path
    return [{ kind: 'record', resource, address, digest: stateOf(entity), requests: 1, id }]
  })
}

function listChecks(resource: Resource, holding: Holding): ListCheck[] {
  const shown = listed(resource, holding)
  const byFilter = filteredLists(resource, shown, holding)
  const several = byFilter.flatMap((lists) => lists.filter(({ expected }) => expected.size > 1))
  const single = byFilter.flatMap((lists) => {
    const alone = lists.filter(({ expected }) => expected.size === 1)
    return alone.toSorted((a, b) => (textHash(a.address) < textHash(b.address) ? -1 : 1)).slice(0, fewLists)
  })
  return [listOf(resource, {}, shown, holding), ...several, ...single]
}

/** Returns the lists for each filter of a resource, one for each value that can be requested. */
function filteredLists(resource: Resource, shown: readonly StoredEntity[], holding: Holding): ListCheck[][] {
  return filterFields(resource).map(([filter], place) =>
    [...Map.groupBy(shown, ({ fields }) => fields?.[place] ?? null)].flatMap(([value, entitiesOfPlace]) =>
      value === null || !canBeAsked(value) ? [] : [listOf(resource, { [filter]: value }, entitiesOfPlace, holding)],
    ),
  )
}

/**
 * Returns the list that shows a record with the fewest others, according to the lake; the whole list if no filter
 * matches.
 */
export function narrowestList(resource: Resource, id: string, holding: Holding): ListCheck {
  const shown = listed(resource, holding)
  const fitting = filteredLists(resource, shown, holding).flatMap((lists) =>
    lists.filter(({ expected }) => expected.has(id)),
  )
  const [narrowest] = fitting.toSorted((a, b) => a.expected.size - b.expected.size)
  return narrowest ?? listOf(resource, {}, shown, holding)
}

/** Returns the entities that lists show: the list of deployments publishes verified ones only. */
function listed({ name }: Resource, { storedEntities }: Holding): StoredEntity[] {
  const open = [...(storedEntities.get(name)?.values() ?? [])].filter((entity) => entity.open)
  return name === 'deployments' ? open.filter(({ verified }) => verified) : open
}

function listOf(
  resource: Resource,
  filters: Filters,
  entities: readonly StoredEntity[],
  { pageLimit }: Holding,
): ListCheck {
  return {
    kind: 'list',
    resource,
    filters,
    address: listAddress(resource, filters),
    digest: textHash(
      entities
        .map((entity) => `${entity.id} ${stateOf(entity)}`)
        .toSorted()
        .join('\n'),
    ),
    requests: Math.max(1, Math.ceil(entities.length / pageLimit)),
    expected: new Set(entities.map(({ id }) => id)),
  }
}

/** Names a list for people, by its path and its filters. */
export function listAddress({ path }: Resource, filters: Filters): string {
  const query = new URLSearchParams(filters).toString()
  return query === '' ? path : `${path}?${query}`
}

/** Returns a text that represents the stored record; equal as long as it does not change. */
export const stateOf = (entity: StoredEntity | undefined): string =>
  entity?.open === true ? (entity.hash ?? '') : 'gone'
