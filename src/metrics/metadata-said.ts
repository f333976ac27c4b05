import { dimensions, type Endpoint } from '../catalog/catalogue.ts'
import type { Wire } from '../catalog/wire.ts'
import type { Series } from '../catalog/series.ts'
import type { RefusalAnswer } from '../ledger/refusals.ts'
import { formatDate, type Instant } from '../time.ts'
import type { Settings } from '../config/settings.ts'
import type { Described } from './metadata-reading.ts'

/** What metadata say of one series since `at`; `start` null: nothing about its beginning. */
export interface DatedSaid {
  readonly listed: boolean
  readonly start: Instant | null
  readonly at: Instant
}

/** Metadata with the instant at which they were first read as they are. */
export interface DatedMetadata extends Described {
  readonly at: Instant
}

/**
 * What metadata say of a series, with its exchange as the provider spells it. An empty list says nothing; nor does one
 * that names none of the values that the catalogue knows, because then the two spell them differently.
 */
export function saidOf(
  { parameters, min, at }: DatedMetadata,
  { queryKeys }: Wire,
  { series, endpoint }: { readonly series: Series; readonly endpoint: Endpoint },
  { exchanges, timestamp }: Pick<Settings['metrics'], 'exchanges' | 'timestamp'>,
): DatedSaid {
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

/** What metadata say of a series, as far as it holds now. */
export interface StandingMetadata {
  /** The answer that stands for all of it; null where it may be asked. */
  readonly unlisted: (RefusalAnswer & { readonly reason: string }) | null
  /** Nothing is asked before this instant. */
  readonly begins: Instant
  /** What was noted as before the start stays so up to here. */
  readonly noted: Instant
  readonly at: Instant
}

/** A series that holds points, or is named exactly, is asked whatever metadata say; what was told first keeps its date. */
export function standingOf(
  said: DatedSaid | null,
  answers: readonly RefusalAnswer[],
  asked: 'new' | 'held' | 'exact',
  floor: (at: Instant) => Instant,
): StandingMetadata {
  const { listed = true, start = null, at = 0 } = said ?? {}
  const never = Number.NEGATIVE_INFINITY
  const noted = start === null || asked === 'exact' ? never : floor(start)
  if (asked !== 'new') return { unlisted: null, begins: never, noted, at }
  const told = answers.find(isUnlisted) ?? { state: 'unsupported' as const, reason: null, asked_at: at, request: null }
  const unlisted = { ...told, reason: told.reason ?? `${unlistedReason}${formatDate(at)}` }
  return { unlisted: listed ? null : unlisted, begins: noted, noted, at }
}
