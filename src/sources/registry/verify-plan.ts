import type { Resource } from '../../catalog/catalogue.ts'
import { affordable, inTurns } from '../../lake/ledger/verify-rounds.ts'
import type { Micros } from '../../base/time.ts'
import { detailAsk, type Filters } from './reading.ts'
import { canBeAsked } from './json.ts'
import type { StoredEntities, StoredEntity } from './history.ts'
import { textHash } from './record.ts'

/** A check of the registry: a request for one record by its own address, or for one list. */
export type Check = RecordCheck | ListCheck

interface Common {
  readonly resource: Resource
  /** Path and filters; what was found there is remembered by it. */
  readonly address: string
  /** Stands for what the lake holds of it: the same as long as that does not change. */
  readonly digest: string
  /** About how many requests it takes. */
  readonly requests: number
}

/** A record by its own address; one that is gone has to be gone there, too. */
export interface RecordCheck extends Common {
  readonly kind: 'record'
  readonly id: string
}

/** A list, by one filter or by none. */
export interface ListCheck extends Common {
  readonly kind: 'list'
  readonly filters: Filters
  /** What it has to show, by what the lake holds. */
  readonly expected: ReadonlySet<string>
}

/** What an address said when it was last found as held: its entity tag, and what was held then. */
export interface Seen {
  readonly at: Micros
  readonly etag: string | null
  readonly digest: string
}

/** What the lake holds, to choose from. */
export interface Holding {
  readonly resources: readonly Resource[]
  readonly storedEntities: StoredEntities
  readonly seenLists: ReadonlyMap<string, Seen>
  /**
   * When an address was last requested, whatever came of it: what never comes out as held keeps nobody else waiting.
   */
  readonly tried: ReadonlyMap<string, Micros>
  readonly pageLimit: number
}

/** A list whose filter picks out a single record says what its own address says: so many of a filter are enough. */
const fewLists = 3
/** A sample has no room for longer lists. */
const sampleShare = 0.2

/** The filters of a resource whose field is known, with its name. */
export function filterFields({ fields, filters }: Resource): readonly (readonly [filter: string, field: string])[] {
  return filters.flatMap((filter) => {
    const found = Object.entries(fields).find(([name, { keys }]) => name === filter || keys.includes(filter))
    return found === undefined ? [] : [[filter, found[0]] as const]
  })
}

/**
 * Whether a list with these filters shows a record: that of deployments publishes verified ones only, and filters
 * compare some fields without regard to case; which, no list says. `valueOf`: what the field of a filter says, by its
 * place too.
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

/**
 * Chooses within the budget (null: everything): in turn from the records and the lists of each resource, never asked or
 * longest ago first. What was found as held since `begun` is done.
 */
export function chooseChecks(
  holding: Holding,
  { budget, begun }: { readonly budget: number | null; readonly begun: Micros },
) {
  const queues: Check[][] = []
  let checksPossible = 0
  for (const resource of holding.resources)
    for (const all of [recordChecks(resource, holding), listChecks(resource, holding)]) {
      const small = all.filter(({ requests }) => budget === null || requests <= Math.max(1, sampleShare * budget))
      checksPossible += all.length
      queues.push(byAge(small, holding, begun))
    }
  const inOrder = inTurns(queues).flatMap((turn) => turn)
  const checks = affordable(inOrder, ({ requests }) => requests, { budget, stops: false })
  return { checks, held: checksPossible }
}

/** Never requested or longest ago first; those of one age in an order that follows no id. */
function byAge(
  checks: readonly Check[],
  { seenLists: seen, tried }: Pick<Holding, 'seenLists' | 'tried'>,
  begun: Micros,
): Check[] {
  const ages = checks.flatMap((check) => {
    const found = seen.get(check.address)?.at ?? 0
    const triedAt = tried.get(check.address) ?? 0
    // What contradicted at the very instant at which this round began was requested by the round before.
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

/** The lists by each filter of a resource, one for each value that can be asked for. */
function filteredLists(resource: Resource, shown: readonly StoredEntity[], holding: Holding): ListCheck[][] {
  return filterFields(resource).map(([filter], place) =>
    [...Map.groupBy(shown, ({ fields }) => fields?.[place] ?? null)].flatMap(([value, entitiesOfPlace]) =>
      value === null || !canBeAsked(value) ? [] : [listOf(resource, { [filter]: value }, entitiesOfPlace, holding)],
    ),
  )
}

/** The list that shows a record with the fewest others, by what the lake holds; the whole one where no filter fits. */
export function narrowestList(resource: Resource, id: string, holding: Holding): ListCheck {
  const shown = listed(resource, holding)
  const fitting = filteredLists(resource, shown, holding).flatMap((lists) =>
    lists.filter(({ expected }) => expected.has(id)),
  )
  const [narrowest] = fitting.toSorted((a, b) => a.expected.size - b.expected.size)
  return narrowest ?? listOf(resource, {}, shown, holding)
}

/** What lists show: the list of deployments publishes verified ones only. */
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

/** How a list is named to people: its path and its filters. */
export function listAddress({ path }: Resource, filters: Filters): string {
  const query = new URLSearchParams(filters).toString()
  return query === '' ? path : `${path}?${query}`
}

/** What the lake holds of a record as one text: equal as long as nothing of it changes. */
export const stateOf = (entity: StoredEntity | undefined): string =>
  entity?.open === true ? (entity.hash ?? '') : 'gone'
