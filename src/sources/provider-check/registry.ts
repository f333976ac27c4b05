import type { Catalogue, Resource } from '../../catalog/catalogue.ts'
import type { EnvelopeKey } from '../../catalog/wire.ts'
import { fieldText } from '../registry/record.ts'
import { canBeAsked, type Fields, isFields, usualFields, type Value } from '../registry/json.ts'
import { type Assessment, holds, type Judges, mergeYaml, speaksAgainst, unknown, type Yaml } from './finding.ts'
import { accessTo, type BesideDeps } from '../http/connection.ts'
import { Ledger } from '../../lake/ledger/ledger.ts'
import { providerAt } from '../../lake/ledger/provider.ts'
import type { Settings } from '../../catalog/settings.ts'
import {
  changesAsk,
  headAsk,
  listAsk,
  type RegistryAsk,
  registryParameters,
  registryUrl,
  snapshotAsk,
} from '../registry/reading.ts'
import { readHead, readList, readPage, readSnapshot, type Snapshot, type Records } from '../registry/bodies.ts'
import type { Outcome } from '../http/outcome.ts'
import { registryState } from '../registry/staging.ts'
import { inLake, places } from '../../lake/store/layout.ts'
import { isThere } from '../../lake/store/files.ts'
import { type Budget, type HeardAnswer, type Listener, listening, type NeededAnswer, whyNot } from './answers.ts'
import { isObject } from '../../base/json.ts'
import { readLimits } from '../http/governor.ts'
import { errorsHold, resetHolds } from './metrics-rows.ts'

/** A usual name around records, with the provider's name for it. */
type Named = readonly [EnvelopeKey, string]

type Resources = ReadonlyMap<string, Resource>

/** Returns the part of a config file for these names, with the names that it already has; null if there are none. */
function yamlOf(names: readonly Named[], resources: Resources): Yaml | null {
  const [first] = resources.values()
  return names.length === 0 ? null : { registry: { keys: { ...first?.keys, ...Object.fromEntries(names) } } }
}

/** Finds the provider's name for a missing key: the only key of an object whose value fits. */
function standsFor(name: EnvelopeKey, object: Fields, fits: (value: Value, key: string) => boolean): Named[] {
  if (Object.hasOwn(object, name)) return []
  const found = Object.entries(object).filter(([key, value]) => fits(value, key))
  return found.length === 1 ? [[name, found[0]?.[0] ?? '']] : []
}

/**
 * Finds the provider's name for a reference: the only key that no field uses and whose values are all ids of that
 * resource; null if there is no such key.
 */
function referenceKey(
  { fields }: Pick<Resource, 'fields'>,
  records: readonly Fields[],
  ids: ReadonlyMap<string, unknown>,
): string | null {
  const knownKeys = new Set(['id', ...Object.values(fields).flatMap(({ keys }) => keys)])
  const keys = new Set(records.flatMap((record) => Object.keys(record)))
  const found = [...keys].filter((key) => {
    const values = records.map((record) => fieldText({ keys: [key] }, record)).filter((value) => value !== null)
    return !knownKeys.has(key) && values.length > 0 && values.every((id) => ids.has(id))
  })
  return found.length === 1 ? (found[0] ?? null) : null
}

const isText = (value: Value): value is string => typeof value === 'string' && value !== ''
const isCursor = (value: Value, key: string): boolean => /cursor|next/i.test(key) && (isText(value) || value === null)

/** Finds the names by which a page of the feed marks its end and the next page. */
function pageKeys(page: Fields): Named[] {
  return [
    ...standsFor('has_more', page, (value) => typeof value === 'boolean'),
    ...standsFor('next_cursor', page, isCursor),
  ]
}

/** Finds the names under which a snapshot contains its arrays and its cursor. */
function snapshotKeys(snapshot: Fields, resources: Resources): Named[] {
  const holdsArrays = (value: Value): value is Fields =>
    isFields(value) && [...resources.keys()].some((name) => Array.isArray(value[name]))
  const place = standsFor('data', snapshot, holdsArrays)
  const inner = Object.values(snapshot).find(holdsArrays)
  const all = { ...inner, ...snapshot }
  return [...place, ...(Object.hasOwn(all, 'next_cursor') ? [] : standsFor('cursor', all, isCursor))]
}

/** Finds the names by which the events of a page describe a change and its entity. */
function eventKeys(page: Fields, resources: Resources): Named[] {
  const event = Object.values(page)
    .flatMap((value) => (Array.isArray(value) ? (value as readonly Value[]) : []))
    .find(isFields)
  if (event === undefined) return []
  const types = new Set([...resources.values()].flatMap(({ name, entity }) => [name, entity]))
  const record = Object.values(event).find((value): value is Fields => isFields(value) && isText(value['id'] ?? null))
  return [
    ...standsFor('entity_type', event, (value) => isText(value) && types.has(value.toLowerCase())),
    ...standsFor('op', event, (value) => isText(value) && /^(?:created|updated|deleted)$/.test(value)),
    ...standsFor('entity_id', event, (value) => isText(value) && value === record?.['id']),
    ...standsFor('record', event, isFields),
  ]
}

/** The stored registry of one provider. */
interface RegistryStanding {
  /** Cursor of the feed; null without a snapshot, or if the cursor cannot be sent back. */
  readonly cursor: string | null
  /** The date of the last snapshot; null without one. */
  readonly held: string | null
}

/** The answers of the registry; null for each that was not requested. */
interface RegistryAnswers {
  /** The date of the lake's last snapshot; null without one. */
  readonly snapshotDate: string | null
  readonly list: HeardAnswer | null
  /** Answer to the list when it is requested by its entity tag. */
  readonly again: HeardAnswer | null
  readonly snapshot: HeardAnswer | null
  /** A page of the feed. */
  readonly changes: HeardAnswer | null
  /** Answer to the page without a limit, requested if the provider refuses one. */
  readonly unlimited: HeardAnswer | null
  /** The answer that ended the listening; null if none did. */
  readonly ended: Outcome | null
  /** The answers to the list, the snapshot and the page. */
  readonly needed: readonly NeededAnswer[]
}

/** The answers of the registry, with the facts by which they are judged. */
export interface RegistrySeen extends RegistryAnswers {
  readonly resources: Resources
  /** Records a page that were requested. */
  readonly pageLimit: number
}

/** Maximum number of requests to the registry. */
export const registryRequests = 4

/** Sends a few cheap requests to the registry; a snapshot is not requested if the lake has one. */
export async function hearRegistry(
  { settings, catalogue }: { readonly settings: Settings; readonly catalogue: Catalogue },
  deps: BesideDeps,
  budget: Budget,
): Promise<RegistrySeen> {
  const access = {
    name: 'registry',
    settings,
    keyHeader: 'Authorization',
    connections: 1,
    maxBytes: 400_000_000,
  } as const
  const { url } = accessTo('registry', settings)
  const { pageLimit } = settings.registry
  const { resources } = catalogue
  const standing = async (sandbox: string | null) => await standingOf(settings.data, url, sandbox)
  return await listening(access, deps, budget, async (listener) => ({
    resources,
    pageLimit,
    ...(await conversation(listener, resources, pageLimit, standing)),
  }))
}

/** Reads the stored registry state of the provider at the address, which calls itself this sandbox, or none if null. */
async function standingOf(root: string, url: string, sandbox: string | null): Promise<RegistryStanding> {
  const nothing = { cursor: null, held: null }
  if (!isThere(inLake(root, places.journal))) return nothing
  using ledger = await Ledger.openToRead(root)
  const provider = ledger.head().provider?.registry
  if (provider === undefined || provider !== providerAt('registry', url, sandbox).registry) return nothing
  const { cursor, last } = registryState(ledger)
  return { cursor: cursor !== null && canBeAsked(cursor) ? cursor : null, held: last?.date ?? null }
}

async function conversation(
  { base, hear, ended, needed, requestsLeft }: Listener,
  resources: Resources,
  pageLimit: number,
  standing: (sandbox: string | null) => Promise<RegistryStanding>,
): Promise<RegistryAnswers> {
  const ask = async (request: RegistryAsk, etag?: string): Promise<HeardAnswer | null> =>
    await hear(registryUrl(base, request), {
      parameters: registryParameters,
      ...(request !== headAsk && { needed: request.path }),
      ...(etag !== undefined && { etag }),
    })
  const [first] = resources.values()
  const request = listAsk(first?.path ?? '/issuers', null, pageLimit)
  const list = await ask(request)
  const tag = list?.outcome.kind === 'body' ? list.outcome.etag : null
  // The same list, requested with its entity tag.
  const again = tag === null ? null : await ask(request, tag)
  const sandbox = list !== null && 'sandbox' in list.outcome ? list.outcome.sandbox : null
  // If the lake has a snapshot of this provider, none is requested.
  const { cursor: latestCursor, held } = await standing(sandbox)
  const snapshot = latestCursor === null ? await ask(snapshotAsk) : null
  const since =
    latestCursor ?? cursorOf(snapshot, resources) ?? (requestsLeft() > 1 ? headOf(await ask(headAsk), resources) : null)
  const changes = since === null ? null : await ask(changesAsk(since, pageLimit))
  const isRefused =
    changes?.outcome.kind === 'refused' &&
    changes.outcome.parameter !== 'since' &&
    changes.outcome.code !== 'invalid_cursor'
  // The same page without a limit, if the provider refuses one.
  const unlimited = isRefused && since !== null ? await ask(changesAsk(since, null)) : null
  return { snapshotDate: held, list, again, snapshot, changes, unlimited, ended: ended(), needed: needed() }
}

function cursorOf(snapshot: HeardAnswer | null, resources: Resources): string | null {
  const read = snapshot?.bytes ? readSnapshot(snapshot.bytes, resources) : null
  return read?.ok ? read.value.cursor : null
}

function headOf(head: HeardAnswer | null, resources: Resources): string | null {
  const read = head?.bytes ? readHead(head.bytes, resources) : null
  return read?.ok ? read.value : null
}

/** The judges of the registry API. */
export const registryJudges: Judges<RegistrySeen> = {
  'fields of a record': fieldsHold,
  references: referencesHold,
  'layout of a snapshot': (seen) =>
    withSnapshot(seen, ({ records }, body) => {
      const missing = [...seen.resources.keys()].filter((name) => !records.has(name))
      const place = isObject(body['data'])
        ? 'under `data`'
        : isObject(body['snapshot'])
          ? 'under `snapshot`'
          : 'at the top'
      const counts = [...records].map(([name, recordsOfResource]) => `${recordsOfResource.size} ${name}`).join(', ')
      return holds(`${place}: ${counts}${missing.length === 0 ? '' : `; no ${missing.join(', ')}`}`)
    }),
  deployments: (registry) =>
    withSnapshot(registry, ({ disagreeing }, body) => {
      const place = ['data', 'snapshot'].map((key) => body[key]).find(isObject) ?? body
      const products: unknown = place['products']
      const inside =
        Array.isArray(products) &&
        products.some((product) => isObject(product) && Array.isArray(product['deployments']))
      const hasDeployments = Array.isArray(place['deployments'])
      const where = [hasDeployments ? 'an array of their own' : '', inside ? 'within products' : ''].filter(
        (text) => text !== '',
      )
      return where.length === 0
        ? unknown('the snapshot has none')
        : holds(`${where.join(' and ')}${disagreeing.length === 0 ? '' : `; ${disagreeing.length} disagree`}`)
    }),
  events: eventsHold,
  'cursor at the tail': (registry) =>
    withPage(registry, (body) => {
      const yaml = yamlOf(pageKeys(body), registry.resources)
      if (typeof body['has_more'] !== 'boolean')
        return speaksAgainst(`a page with ${Object.keys(body).join(', ')}, without \`has_more\``, yaml)
      if (body['has_more']) return unknown('the feed continues: its end was not reached')
      const cursor = body['next_cursor']
      if (cursor === undefined && Object.keys(body).some((key) => /cursor|next/i.test(key)))
        return speaksAgainst(
          `a cursor under ${Object.keys(body).find((key) => /cursor|next/i.test(key))} instead of \`next_cursor\``,
          yaml,
        )
      return holds(
        typeof cursor === 'string' ? 'a cursor' : `${cursor === null ? 'null' : 'absent'}: the last one is kept`,
      )
    }),
  '`limit` of a page': limitHolds,
  'entity types': (seen) =>
    withPage(seen, (_, bytes) => {
      const read = readPage(bytes, seen.resources)
      if (!read.ok) return unknown(read.reason)
      const types = new Map(read.value.events.map(({ type, resource }) => [type, resource]))
      if (types.size === 0) return unknown('no event came')
      const odd = [...types].filter(([, resource]) => resource === null).map(([type]) => type)
      return holds(
        `${[...types.keys()].join(', ')}${odd.length === 0 ? '' : `; not known, kept raw: ${odd.join(', ')}`}`,
      )
    }),
  'when an event is known': () => unknown('no answer shows it: the time of the poll counts'),
  'body of an error': (seen) => errorsHold(answers(seen)),
  limits: (seen) => {
    const heard = answers(seen)
    if (heard.length === 0) return unknown('nothing was answered')
    const reset = resetHolds(heard)
    if (reset.verdict === 'contradicted') return reset
    const signs = heard.map(({ headers, at }) => readLimits(headers, at * 1000)).find(({ limit }) => limit !== null)
    if (signs === undefined) return unknown('no header reports them; a refusal does')
    const daily = signs.dailyRemaining === null ? '' : `, ${signs.dailyRemaining} left of the day`
    return holds(`headers say ${signs.limit} in their window${daily}`)
  },
  'conditional requests': ({ list, again }) => {
    if (list?.outcome.kind !== 'body') return unknown(whyNot(list))
    if (list.outcome.etag === null) return holds('no `ETag` came: everything is asked for whole')
    if (again === null) return unknown(whyNot(again))
    if (again.outcome.kind === 'not_modified') return holds('an `ETag` came, and 304 to it')
    return holds(`an \`ETag\` came, and ${whyNot(again)} to it: the body comes each time`)
  },
  rhythm: () => unknown('only weeks of polls show it: pitlake watch, then registry status'),
}

function answers({ list, again, snapshot, changes, unlimited }: RegistrySeen): HeardAnswer[] {
  return [list, again, snapshot, changes, unlimited].filter((heard) => heard !== null)
}

type Body = Readonly<Record<string, unknown>>

function withSnapshot(
  { snapshot, snapshotDate: held, resources }: RegistrySeen,
  judge: (read: Snapshot, body: Body) => Assessment,
) {
  if (snapshot === null && held !== null) return holds(`the lake holds a snapshot of ${held}`)
  if (!snapshot?.bytes) return unknown(whyNot(snapshot))
  const read = readSnapshot(snapshot.bytes, resources)
  if (!isFields(snapshot.body)) return speaksAgainst('no object')
  const body = usualFields(snapshot.body, resources)
  if (read.ok) return judge(read.value, body)
  const evidence = `${read.reason} (it has ${Object.keys(snapshot.body).slice(0, 10).join(', ')})`
  return speaksAgainst(evidence, yamlOf(snapshotKeys(body, resources), resources))
}

function withPage(
  { changes, unlimited, resources }: RegistrySeen,
  judge: (body: Fields, bytes: Uint8Array) => Assessment,
): Assessment {
  const page = unlimited ?? changes
  if (!page?.bytes) return unknown(whyNot(page))
  return isFields(page.body)
    ? judge(usualFields(page.body, resources), page.bytes)
    : speaksAgainst('a page that is no object')
}

/** Reads the records of the list; an assessment with the reason if there are none. */
function recordsOf({ list, resources }: RegistrySeen): readonly Body[] | Assessment {
  const [resource] = resources.values()
  if (!list?.bytes || resource === undefined) return unknown(whyNot(list))
  const read = readList(list.bytes, resource)
  if (!read.ok) {
    if (!isFields(list.body)) return speaksAgainst(read.reason)
    const arrays = Object.entries(list.body).filter(([, value]) => Array.isArray(value))
    const yaml = yamlOf(arrays.length === 1 ? [['data', arrays[0]?.[0] ?? '']] : [], resources)
    return speaksAgainst(`${read.reason} (the list has ${Object.keys(list.body).join(', ')})`, yaml)
  }
  const records = read.value.records.filter(isFields)
  return records.length === 0 ? unknown('the list is empty') : records
}

function fieldsHold(registry: RegistrySeen): Assessment {
  const records = recordsOf(registry)
  const [resource] = registry.resources.values()
  if ('verdict' in records || resource === undefined) return records as Assessment
  const lacking = Object.entries(resource.fields).filter(
    ([, { keys }]) => !keys.some((key) => records.some((record) => key in record)),
  )
  return holds(
    lacking.length === 0
      ? `all named fields of ${resource.name}`
      : `${resource.name} without ${lacking.map(([name]) => name).join(', ')}: those columns stay null`,
  )
}

function referencesHold(seen: RegistrySeen): Assessment {
  return withSnapshot(seen, ({ records }) => {
    const broken = [...seen.resources.values()].flatMap((resource) => lostReferences(resource, records))
    const words = broken.map(({ words: text }) => text).join(', ')
    const parts = broken.map(({ yaml }) => yaml).filter((yaml) => yaml !== null)
    return broken.length === 0
      ? holds('every reference is there under one of its names')
      : speaksAgainst(words, parts.length === 0 ? null : mergeYaml(parts))
  })
}

/** References that no record of the resource has, with the setting that mends each. */
function lostReferences(resource: Resource, all: Records): { words: string; yaml: Yaml | null }[] {
  const { name, fields } = resource
  const records = [...(all.get(name)?.values() ?? [])].map(({ text }) => JSON.parse(text) as Fields)
  return Object.entries(fields).flatMap(([field, { keys, to }]) => {
    const ids = to === null ? undefined : all.get(to)
    if (ids === undefined || records.length === 0 || keys.some((key) => records.some((record) => key in record)))
      return []
    const referringKey = referenceKey(resource, records, ids)
    const words = `no ${field} in ${name}${referringKey === null ? '' : `: it is ${referringKey}`}`
    return [
      { words, yaml: referringKey === null ? null : { registry: { fields: { [name]: { [field]: referringKey } } } } },
    ]
  })
}

function eventsHold(registry: RegistrySeen): Assessment {
  const { resources } = registry
  return withPage(registry, (body, bytes) => {
    const arrays = Object.entries(body).filter(([, value]) => Array.isArray(value))
    const names = arrays.map(([name]) => `\`${name}\``).join(', ')
    const read = readPage(bytes, resources)
    if (!read.ok) {
      const keys = [...pageKeys(body), ...eventKeys(body, resources)]
      return speaksAgainst(`${read.reason} (the page has ${Object.keys(body).join(', ')})`, yamlOf(keys, resources))
    }
    if (read.value.events.length > 0) return holds(`${read.value.events.length} under ${names}`)
    const odd = Object.entries(body).find(([, value]) => isObject(value))
    if (arrays.length === 0 && odd !== undefined) return speaksAgainst(`no array, but an object under \`${odd[0]}\``)
    return unknown(
      `${arrays.length === 0 ? 'no array' : `an empty array under ${names}`}: an hour with events would tell`,
    )
  })
}

function limitHolds({ list, changes, unlimited, pageLimit }: RegistrySeen): Assessment {
  const { outcome } = list ?? {}
  if (outcome?.kind === 'refused' && outcome.parameter === 'limit') {
    const [most] = (outcome.words.match(/\d+/g) ?? [])
      .map(Number)
      .filter((n) => n > 0 && n < pageLimit)
      .toSorted((a, b) => b - a)
    const evidence = `a limit of ${pageLimit} is refused: ${outcome.words}`
    return speaksAgainst(evidence, { registry: { page_limit: most ?? 100 } })
  }
  if (outcome?.kind !== 'body') return unknown(whyNot(list))
  if (unlimited !== null) return holds(`lists take ${pageLimit}, the feed refuses it and is read without`)
  return holds(`lists${changes?.outcome.kind === 'body' ? ' and the feed' : ''} take ${pageLimit}`)
}
