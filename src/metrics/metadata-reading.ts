import { z } from 'zod'
import type { Wire } from '../catalog/wire.ts'
import { jsonOf } from '../json.ts'
import { type Instant, parseInstant } from '../time.ts'

/** What a provider says of a path: the values that each parameter takes, by query key, and where history begins. */
export interface Described {
  readonly parameters: Readonly<Record<string, readonly string[]>>
  readonly min: Instant | null
}

const value = z.union([z.string(), z.number(), z.boolean()]).transform(String)
/** A text or a list; in any other shape a parameter says nothing. */
const values = z.union([value.transform((one) => [one]), z.array(value)]).catch([])
/** No history begins beyond the year 4980: whatever says so says nothing, lest all of it be left out. */
const latest = 95_000_000_000
/** Seconds, or milliseconds where that were beyond; or a text with an instant. */
const instant = z
  .union([
    z.number().transform((at) => Math.floor(at > latest ? at / 1000 : at)),
    z.string().transform((text) => parseInstant(text) ?? null),
  ])
  .transform((at) => (at !== null && at > latest ? null : at))
  .nullish()
  .catch(null)

/** Reads the metadata of a path; null for what is of another shape. What changes from day to day is left out. */
export function readMetadata(text: string, keys: NonNullable<Wire['metadata']>): Described | null {
  const body = z.looseObject({
    [keys.parameters]: z.record(z.string(), values),
    [keys.timerange]: z
      .looseObject({ [keys.min]: instant })
      .nullish()
      .catch(null),
  })
  const { data } = body.safeParse(jsonOf(text))
  if (data === undefined) return null
  const lists = data[keys.parameters] as Record<string, string[]>
  const range = data[keys.timerange] as Record<string, Instant | null | undefined> | null | undefined
  return {
    // Sorted: another order says nothing new.
    parameters: Object.fromEntries(Object.entries(lists).map(([key, list]) => [key, [...new Set(list)].toSorted()])),
    min: range?.[keys.min] ?? null,
  }
}
