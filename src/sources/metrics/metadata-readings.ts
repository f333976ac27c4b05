import { z } from 'zod'
import { dimensions, type Endpoint } from '../../catalog/catalogue.ts'
import type { Series } from '../../catalog/series.ts'
import type { Wire } from '../../catalog/wire.ts'
import type { Settings } from '../../catalog/settings.ts'
import { jsonOf } from '../../base/json.ts'
import { formatDate, type Instant, parseInstant } from '../../base/time.ts'
import type { standingRefusal } from '../../lake/ledger/refusals.ts'

type RefusalAnswer = Parameters<typeof standingRefusal>[0][number]

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

/**
 * What a provider says of a path: the values that each parameter takes, by query key, and where history begins; null for what
 * is of another shape. What changes from day to day is left out.
 */
export function readMetadata(text: string, keys: NonNullable<Wire['metadata']>) {
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
    parameters: Object.fromEntries(
      Object.entries(lists).map(([key, list]): [string, readonly string[]] => [key, [...new Set(list)].toSorted()]),
    ),
    min: range?.[keys.min] ?? null,
  }
}

/** Metadata with the instant at which they were first read as they are. */
type DatedMetadata = Readonly<NonNullable<ReturnType<typeof readMetadata>>> & { readonly at: Instant }

/**
 * What metadata say of a series, with its exchange as the provider spells it. An empty list says nothing; nor does one
 * that names none of the values that the catalogue knows, because then the two spell them differently.
 */
export function saidOf(
  { parameters, min, at }: DatedMetadata,
  { queryKeys }: Wire,
  { series, endpoint }: { readonly series: Series; readonly endpoint: Endpoint },
  { exchanges, timestamp }: Pick<Settings['metrics'], 'exchanges' | 'timestamp'>,
) {
  const spelt = (name: string): string => exchanges[name] ?? name
  const names = (name: keyof Wire['queryKeys'], own: string | null, known: readonly string[]): boolean => {
    const key = queryKeys[name]
    const list = Object.hasOwn(parameters, key) ? (parameters[key] ?? []) : []
    const says = known.length === 0 ? list.length > 0 : known.some((one) => list.includes(one))
    return own === null || !says || list.includes(own)
  }
  const own = { ...series, exchange: series.exchange === null ? null : spelt(series.exchange) }
  const known = { ...endpoint, exchanges: endpoint.exchanges.map(spelt) }
  const listed = names('asset', own.asset, []) && dimensions.every(({ one, many }) => names(one, own[one], known[many]))
  // An end is told of the interval before it.
  return { listed, start: min !== null && timestamp === 'interval_end' ? min - 1 : min, at }
}

const unlistedReason = 'not in the metadata of '

/** The reason of windows before the beginning that the provider's metadata tell. */
export const beforeStart = "before the provider's start"

/** Whether an answer rests on metadata that leave the series out. */
export function isUnlisted({ state, reason }: Pick<RefusalAnswer, 'state' | 'reason'>): boolean {
  return state === 'unsupported' && reason?.startsWith(unlistedReason) === true
}

/** Whether nobody was asked, because of what metadata say. */
export function isOfMetadata(answer: Pick<RefusalAnswer, 'state' | 'reason'>): boolean {
  return isUnlisted(answer) || answer.reason === beforeStart
}

/** A series that holds points, or is named exactly, is asked whatever metadata say; what was told first keeps its date. */
export function standingOf(
  said: ReturnType<typeof saidOf> | null,
  answers: readonly RefusalAnswer[],
  asked: 'new' | 'held' | 'exact',
  floor: (at: Instant) => Instant,
) {
  const { listed = true, start = null, at = 0 } = said ?? {}
  const never = Number.NEGATIVE_INFINITY
  const noted = start === null || asked === 'exact' ? never : floor(start)
  const told = answers.find(isUnlisted) ?? { state: 'unsupported' as const, reason: null, asked_at: at, request: null }
  const isNew = asked === 'new'
  return {
    /** The answer that stands for all of it; null where it may be asked. */
    unlisted: listed || !isNew ? null : { ...told, reason: told.reason ?? `${unlistedReason}${formatDate(at)}` },
    /** Nothing is asked before this instant. */
    begins: isNew ? noted : never,
    /** What was noted as before the start stays so up to here. */
    noted,
    at,
  }
}
