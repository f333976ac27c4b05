import type { Resource } from '../catalog/catalogue.ts'
import type { EnvelopeKey } from '../catalog/wire.ts'
import { fieldText } from '../registry/record.ts'
import { type Fields, isFields, type Value } from '../registry/json.ts'
import type { Yaml } from './finding.ts'

/** A usual name around records and the one that stands for it here. */
type Named = readonly [EnvelopeKey, string]

type Resources = ReadonlyMap<string, Resource>

/** The part of a config file that says so, beside the names that it has already; null for none. */
export function yamlOf(names: readonly Named[], resources: Resources): Yaml | null {
  const [first] = resources.values()
  return names.length === 0 ? null : { registry: { keys: { ...first?.keys, ...Object.fromEntries(names) } } }
}

/** The only key of an object that is not a usual one and whose value fits, as what stands for one that is missing. */
function standsFor(name: EnvelopeKey, object: Fields, fits: (value: Value, key: string) => boolean): Named[] {
  if (Object.hasOwn(object, name)) return []
  const found = Object.entries(object).filter(([key, value]) => fits(value, key))
  return found.length === 1 ? [[name, found[0]?.[0] ?? '']] : []
}

/** What stands for a reference: the only key, of no other field, under which nothing but ids of that resource stand. */
export function referenceKey(
  { fields }: Pick<Resource, 'fields'>,
  records: readonly Fields[],
  ids: ReadonlyMap<string, unknown>,
): string | null {
  const others = new Set(['id', ...Object.values(fields).flatMap(({ keys }) => keys)])
  const keys = new Set(records.flatMap((record) => Object.keys(record)))
  const found = [...keys].filter((key) => {
    const values = records.map((record) => fieldText({ keys: [key] }, record)).filter((value) => value !== null)
    return !others.has(key) && values.length > 0 && values.every((id) => ids.has(id))
  })
  return found.length === 1 ? (found[0] ?? null) : null
}

const isText = (value: Value): value is string => typeof value === 'string' && value !== ''
const isCursor = (value: Value, key: string): boolean => /cursor|next/i.test(key) && (isText(value) || value === null)

/** How a page of the feed names its end and what comes next. */
export function pageKeys(page: Fields): Named[] {
  return [
    ...standsFor('has_more', page, (value) => typeof value === 'boolean'),
    ...standsFor('next_cursor', page, isCursor),
  ]
}

/** Under what a snapshot holds its arrays, and how it names its cursor. */
export function snapshotKeys(snapshot: Fields, resources: Resources): Named[] {
  const holdsArrays = (value: Value): value is Fields =>
    isFields(value) && [...resources.keys()].some((name) => Array.isArray(value[name]))
  const place = standsFor('data', snapshot, holdsArrays)
  const inner = Object.values(snapshot).find(holdsArrays)
  const all = { ...inner, ...snapshot }
  return [...place, ...(Object.hasOwn(all, 'next_cursor') ? [] : standsFor('cursor', all, isCursor))]
}

/** How the events of a page name what happened to what. */
export function eventKeys(page: Fields, resources: Resources): Named[] {
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
