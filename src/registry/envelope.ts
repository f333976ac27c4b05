import type { Resource } from '../catalog/catalogue.ts'
import { keyMark } from '../secrets/secrets.ts'
import { BadBody, type Fields, isFields, type Value } from './json.ts'

/** The parts of an envelope around records. */
export interface Envelope {
  readonly as_of: string | null
  readonly cursor: string | null
}

/**
 * An object around records under the usual names, where the configuration says that this provider has others; of what is
 * there under the usual name that holds.
 */
export function usually(object: Fields, of: Resource | ReadonlyMap<string, Resource>): Fields {
  const [first] = of instanceof Map ? (of as ReadonlyMap<string, Resource>).values() : [of as Resource]
  // For each event of a feed: where nothing has another name, nothing is made.
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

/** The cursor, under the first of these names, and the instant that a body states, at its top or under `data`. */
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
