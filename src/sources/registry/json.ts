import type { Resource } from '../../catalog/catalogue.ts'
import { isObject } from '../../base/json.ts'
import { keyMark } from '../../base/secrets.ts'

/** A parsed JSON value. */
export type Value = null | boolean | number | string | readonly Value[] | Fields
export interface Fields {
  readonly [key: string]: Value
}

/** Whether the value is a JSON object. */
export const isFields = (value: unknown): value is Fields => isObject(value)

/** The body cannot be read; the message is the reason. */
export class BadBody extends Error {}

/** Maximum nesting; a deeper value counts as damaged. */
const deepest = 64

/** Serialises a value as JSON from which every double is restored with the same 64 bits; `whose` names it in errors. */
export function recordJson(value: Value, whose = 'a value'): string {
  const shape = { depth: 0, odd: false }
  look(value, 0, shape)
  if (shape.depth > deepest) throw new BadBody(`${whose}: nested deeper than ${deepest}`)
  return shape.odd ? exactText(value, Object.keys) : JSON.stringify(value)
}

/** Measures the nesting of arrays and objects, and finds numbers that `JSON.stringify` would change. */
function look(value: Value, depth: number, shape: { depth: number; odd: boolean }): void {
  if (typeof value === 'number') {
    if (value === 0 ? Object.is(value, -0) : !Number.isFinite(value)) shape.odd = true
    return
  }
  if (typeof value !== 'object' || value === null) return
  if (depth > shape.depth) shape.depth = depth
  if (depth > deepest) return
  if (Array.isArray(value)) for (const item of value as readonly Value[]) look(item, depth + 1, shape)
  else for (const key in value as Fields) look((value as Fields)[key] as Value, depth + 1, shape)
}

function exactText(value: Value, keysOf: (fields: Fields) => readonly string[]): string {
  if (typeof value === 'number') return numberText(value)
  if (Array.isArray(value)) return `[${(value as readonly Value[]).map((item) => exactText(item, keysOf)).join(',')}]`
  if (!isFields(value)) return JSON.stringify(value)
  const members = keysOf(value).map((key) => `${JSON.stringify(key)}:${exactText(value[key] ?? null, keysOf)}`)
  return `{${members.join(',')}}`
}

function numberText(value: number): string {
  if (Object.is(value, -0)) return '-0.0'
  if (Number.isFinite(value)) return String(value)
  return value > 0 ? '1e999' : '-1e999'
}

/** Serialises a value as JSON with sorted keys, so that equal values give equal texts. */
export const sortedText = (value: Value): string => exactText(value, (fields) => Object.keys(fields).toSorted())

/**
 * Renames the keys around records to the usual names, if this provider is configured with others; a key with the usual
 * name takes precedence.
 */
export function usualFields(object: Fields, of: Resource | ReadonlyMap<string, Resource>): Fields {
  const [first] = of instanceof Map ? (of as ReadonlyMap<string, Resource>).values() : [of as Resource]
  // Called for each event of a feed: without other names, no object is created.
  if (Object.keys(first?.keys ?? {}).length === 0) return object
  const here = (from: Fields): [string, Value][] =>
    Object.entries(first?.keys ?? {}).flatMap(([name, theirs]): [string, Value][] =>
      Object.hasOwn(from, name) || !Object.hasOwn(from, theirs) ? [] : [[name, from[theirs] ?? null]],
    )
  const top = here(object)
  const whole = top.length === 0 ? object : { ...object, ...Object.fromEntries(top) }
  const inner = isFields(whole['data']) ? here(whole['data']) : []
  return inner.length === 0 ? whole : { ...whole, ...Object.fromEntries(inner), ...whole }
}

/** The facts that a body states about itself, at its top or under `data`. */
export interface Envelope {
  /** The timestamp as sent; null if it states none. */
  readonly as_of: string | null
  /** Cursor for the next page of the feed or the list; null if it states none. */
  readonly cursor: string | null
}

/** Reads the timestamp that a body states, and its cursor, under the first of these names. */
export function envelope(body: Fields, cursorKeys: readonly string[]): Envelope {
  const inner = isFields(body['data']) ? body['data'] : {}
  const find = (keys: readonly string[]): string | null => {
    for (const key of keys)
      for (const place of [body, inner]) {
        const value = place[key]
        if (typeof value === 'string' && value !== '') return value
        if (typeof value === 'number') return String(value)
      }
    return null
  }
  const cursor = find(cursorKeys)
  if (cursor !== null && !canBeAsked(cursor)) throw new BadBody('a cursor that cannot be asked for')
  return { as_of: find(['as_of', 'asOf']), cursor }
}

const longestCursor = 4096

/** Whether a cursor can be stored and sent back as it is: whole text of sensible length, without a key in it. */
export function canBeAsked(cursor: string): boolean {
  return cursor.length <= longestCursor && cursor.isWellFormed() && !cursor.includes(keyMark)
}
