import { day, formatInstant, parseInstant, type Instant } from '../../base/time.ts'
import type { WindowAnswer } from './entry.ts'

/** How long a series that has points may be refused before it counts as withdrawn. */
export const alarmPatience = 30 * day

/** How the words of a refusal begin, by what refused: that of a range before that of a whole series. */
const begins = {
  forbidden: ['path', '403, outside the plan: '],
  gone: ['path', '404, gone: '],
  'forbidden alone': ['series', '403 to this series alone: '],
  'gone alone': ['series', '404 to this series alone: '],
  range: ['range', '400 to this range: '],
  refused: ['series', '400: '],
} as const satisfies Record<string, readonly [RefusalScope, string]>

/** The words of a refusal by what it is about. */
export function refusalWords(kind: keyof typeof begins, words: string): string {
  return `${begins[kind][1]}${words}`
}

/** Whether the words of a refusal of a path are those of a 404, which may mean a single series. */
export const isGone = (words: string): boolean => words.startsWith(begins.gone[1])

/** The reason of a window in which a series that has points is refused. */
export function alarmReason(since: Instant, words: string): string {
  return `refused since ${formatInstant(since)}: ${words}`
}

/** How the reason of a window begins whose series is no longer waited for. */
export const withdrawnBegin = 'withdrawn, '

/** The reason of a window of a series that is no longer waited for. */
export function withdrawnReason(since: Instant, words: string): string {
  return `${withdrawnBegin}${alarmReason(since, words)}`
}

/** The reason as it was while the series was still waited for. */
export function standingWords(reason: string): string {
  return reason.startsWith(withdrawnBegin) ? reason.slice(withdrawnBegin.length) : reason
}

/**
 * The subject of a refusal: after 403 and 404 the whole path, unless it answers others; after 400 one series (a refused
 * currency says nothing of a different one), or only a range of a series that is answered elsewhere.
 */
export type RefusalScope = 'path' | 'range' | 'series'

/** A refusal of the provider as the reason of a coverage range records it. */
export interface Refusal {
  readonly scope: RefusalScope
  /** The status and the words of the provider. */
  readonly words: string
  /** Since when a series that has points is refused, in seconds; null if it never had any. */
  readonly since: Instant | null
  /** Whether pitlake no longer waits for it: refused for 30 days, or acknowledged by a person. */
  readonly withdrawn: boolean
}

/** Reads the refusal out of the reason of a coverage range; null if it names none. */
export function readRefusal(reason: string | null): Refusal | null {
  if (reason === null) return null
  const standing = /^(withdrawn, )?refused since (\S+): (.*)$/s.exec(reason)
  const words = standing?.[3] ?? reason
  const scope = Object.values(begins).find(([, begin]) => words.startsWith(begin))?.[0]
  if (scope === undefined) return null
  const since = standing?.[2] === undefined ? null : (parseInstant(standing[2]) ?? null)
  return { scope, words, since, withdrawn: standing?.[1] !== undefined }
}

/** Whether a reason tells that a series was refused that has points. */
export function isOfHeld(reason: string | null): boolean {
  return (readRefusal(reason)?.since ?? null) !== null
}

/** SQL condition: a row of coverage records the refusal of a series that has points, also a withdrawn one. */
export const refusedOfHeld = `state IN ('failed', 'unsupported')
  AND (reason LIKE 'refused since %' OR reason LIKE 'withdrawn, refused since %')`

/**
 * An alarm is asked with each run for so long, then, as any path, daily: with room for a cron that comes a little
 * early.
 */
const eagerPatience = day
const dailyPatience = 22 * 3600
/** A refusal of a series or range that is no alarm is tried again after so long. */
export const refusalPatience = 30 * day

/** A refusal that no later answer has overtaken. */
export interface StandingRefusal extends Refusal {
  /** The state of the coverage range that records it. */
  readonly state: 'unsupported' | 'failed'
  /** The reason of that range, from which the other fields were read. */
  readonly reason: string
  /** When the provider was last requested, seconds. */
  readonly asked_at: Instant
  /** Id of that request; null if none is recorded. */
  readonly request: string | null
}

/** What coverage records of an answer, without its range. */
export type RecordedAnswer = Omit<WindowAnswer, 'since' | 'until'>

/** The newest refusal of a series or path among its answers, unless the provider has answered since. */
export function standingRefusal(answers: readonly RecordedAnswer[]): StandingRefusal | null {
  let newest: StandingRefusal | null = null
  let answered = Number.NEGATIVE_INFINITY
  for (const { state, reason, asked_at, request } of answers) {
    if (state === 'covered' || state === 'empty') answered = Math.max(answered, asked_at)
    if ((state !== 'unsupported' && state !== 'failed') || asked_at < (newest?.asked_at ?? Number.NEGATIVE_INFINITY))
      continue
    const refusal = readRefusal(reason)
    if (refusal === null || refusal.scope === 'range') continue
    // A refusal of which nobody knows yet whether it is the series or the range.
    if (state === 'failed' && refusal.since === null) continue
    newest = { ...refusal, state, reason: reason ?? '', asked_at, request }
  }
  return newest !== null && newest.asked_at > answered ? newest : null
}

/** Whether a standing refusal is to be tried again now. An instant of the future says nothing. */
export function isTriedAgain({ scope, since, withdrawn, asked_at }: StandingRefusal, now: Instant): boolean {
  const ago = now - asked_at
  if (ago < -day) return true
  if (since === null || withdrawn) return ago >= (scope === 'path' ? dailyPatience : refusalPatience)
  return now - since < eagerPatience || ago >= dailyPatience
}
