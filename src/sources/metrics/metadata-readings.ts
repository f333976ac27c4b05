import { z } from 'zod'
import { dimensions, type Endpoint } from '../../catalog/catalogue.ts'
import type { Series } from '../../catalog/series.ts'
import type { MetadataWire, QueryKey, Wire } from '../../catalog/wire.ts'
import type { MetricsSettings } from '../../catalog/settings.ts'
import { jsonOf } from '../../base/json.ts'
import { formatDate, type Instant, parseInstant } from '../../base/time.ts'
import type { RecordedAnswer } from '../../lake/ledger/refusals.ts'

const value = z.union([z.string(), z.number(), z.boolean()]).transform(String)
/** Values of a parameter: a text or a list; any other form counts as empty. */
const values = z.union([value.transform((single) => [single]), z.array(value)]).catch([])
/**
 * Latest plausible start of history, in the year 4980; a later one is ignored, because it would exclude all of history.
 */
const latest = 95_000_000_000
/** A time in seconds, or in milliseconds if seconds would be implausible, or as text. */
const instant = z
  .union([
    z.number().transform((at) => Math.floor(at > latest ? at / 1000 : at)),
    z.string().transform((text) => parseInstant(text) ?? null),
  ])
  .transform((at) => (at !== null && at > latest ? null : at))
  .nullish()
  .catch(null)

/** A provider's metadata of one path, without the facts that change daily. */
export interface PathMetadata {
  /** The values that each parameter takes, sorted, by query key. */
  readonly parameters: Readonly<Record<string, readonly string[]>>
  /** The values that the provider assumes if a request names none, by query key; left out if the metadata name none. */
  readonly defaults?: Readonly<Record<string, readonly string[]>> | undefined
  /** The lowest tier of a plan that includes the path; left out if the metadata name none. */
  readonly tier?: number | undefined
  /** Whether the path is offered for all assets at once; left out if the metadata do not state it. */
  readonly bulk?: boolean | undefined
  /** Start of history; null if the metadata do not state it. */
  readonly min: Instant | null
}

/** Reads the metadata of a path; null for a text of a different shape. */
export function readMetadata(text: string, keys: MetadataWire): PathMetadata | null {
  const body = z.looseObject({
    [keys.parameters]: z.record(z.string(), values),
    ...(keys.defaults !== undefined && { [keys.defaults]: z.record(z.string(), values).optional().catch(undefined) }),
    [keys.timerange]: z
      .looseObject({ [keys.min]: instant })
      .nullish()
      .catch(null),
  })
  const { data } = body.safeParse(jsonOf(text))
  if (data === undefined) return null
  const lists = data[keys.parameters] as Record<string, string[]>
  const range = data[keys.timerange] as Record<string, Instant | null | undefined> | null | undefined
  const standard = keys.defaults === undefined ? undefined : data[keys.defaults]
  const tier = keys.tier === undefined ? undefined : z.number().safeParse(data[keys.tier]).data
  const bulk = keys.bulk === undefined ? undefined : z.boolean().safeParse(data[keys.bulk]).data
  return {
    // Sorted, because a different order is no news.
    parameters: Object.fromEntries(
      Object.entries(lists).map(([key, list]): [string, readonly string[]] => [key, [...new Set(list)].toSorted()]),
    ),
    ...(standard !== undefined && { defaults: standard as Record<string, string[]> }),
    ...(tier !== undefined && { tier }),
    ...(bulk !== undefined && { bulk }),
    min: range?.[keys.min] ?? null,
  }
}

/** Metadata with the time at which they were first read as they are. */
export interface DatedMetadata extends PathMetadata {
  readonly at: Instant
}

/** The metadata of one series. */
export interface SeriesMetadata {
  /** Whether they list all its parameters. */
  readonly listed: boolean
  /** Start of its history; null if the metadata do not state it. */
  readonly start: Instant | null
  /** Time at which they were first read in their present form. */
  readonly at: Instant
}

/**
 * Reads the metadata of a path for one series. An empty list excludes nothing; nor does a list without any value that
 * the catalogue knows, because the two then spell values differently.
 */
export function saidOf(
  { parameters, min, at }: DatedMetadata,
  { queryKeys }: Wire,
  { series, endpoint }: { readonly series: Series; readonly endpoint: Endpoint },
  { timestamp }: Pick<MetricsSettings, 'timestamp'>,
): SeriesMetadata {
  const names = (name: QueryKey, wantedName: string | null, alternatives: readonly string[]): boolean => {
    const key = queryKeys[name]
    const list = Object.hasOwn(parameters, key) ? (parameters[key] ?? []) : []
    const says =
      alternatives.length === 0 ? list.length > 0 : alternatives.some((alternative) => list.includes(alternative))
    return wantedName === null || !says || list.includes(wantedName)
  }
  const listed =
    names('asset', series.asset, []) &&
    dimensions.every(({ singular, plural }) => names(singular, series[singular], endpoint[plural]))
  // For interval ends, the start belongs to the interval before it.
  return { listed, start: min !== null && timestamp === 'interval_end' ? min - 1 : min, at }
}

const unlistedReason = 'not in the metadata of '

/** The reason of windows before the start of history in the provider's metadata. */
export const beforeStart = "before the provider's start"

/** Whether an answer rests on metadata that leave the series out. */
export function isUnlisted({ state, reason }: Pick<RecordedAnswer, 'state' | 'reason'>): boolean {
  return state === 'unsupported' && reason?.startsWith(unlistedReason) === true
}

/** Whether the window was not requested because of metadata. */
export function isOfMetadata(answer: Pick<RecordedAnswer, 'state' | 'reason'>): boolean {
  return isUnlisted(answer) || answer.reason === beforeStart
}

/** The consequences of metadata for the plan of one series. */
export interface MetadataStanding {
  /** The answer to record for the whole range; null if the series may be requested. */
  readonly unlisted: (RecordedAnswer & { readonly reason: string }) | null
  /** Nothing is requested before this time; -Infinity for no bound. */
  readonly begins: Instant
  /** End of the range for which a recorded "before the start" remains valid; -Infinity for no bound. */
  readonly noted: Instant
  /** Time at which the metadata were first read in their present form; 0 without metadata. */
  readonly at: Instant
}

/**
 * Determines the consequences of metadata. A series that has points, or is named exactly, is requested in any case; an
 * earlier record keeps its date.
 */
export function standingOf(
  metadata: SeriesMetadata | null,
  answers: readonly RecordedAnswer[],
  purpose: 'new' | 'held' | 'exact',
  floor: (at: Instant) => Instant,
): MetadataStanding {
  const { listed = true, start = null, at = 0 } = metadata ?? {}
  const never = Number.NEGATIVE_INFINITY
  const noted = start === null || purpose === 'exact' ? never : floor(start)
  const recorded = answers.find(isUnlisted) ?? {
    state: 'unsupported' as const,
    reason: null,
    asked_at: at,
    request: null,
  }
  const isNew = purpose === 'new'
  return {
    unlisted:
      listed || !isNew ? null : { ...recorded, reason: recorded.reason ?? `${unlistedReason}${formatDate(at)}` },
    begins: isNew ? noted : never,
    noted,
    at,
  }
}
