import { day, formatInstant, parseInstant, type Instant } from '../../base/time.ts'
import type { WindowAnswer } from './entry.ts'

/** Time for which a series that has points may be refused before it counts as withdrawn. */
export const alarmPatience = 30 * day

/** First words of a refusal, by what is refused; a range is listed before a whole series. */
const begins = {
  forbidden: ['path', '403, outside the plan: '],
  gone: ['path', '404, gone: '],
  'forbidden alone': ['series', '403 to this series alone: '],
  'gone alone': ['series', '404 to this series alone: '],
  range: ['range', '400 to this range: '],
  refused: ['series', '400: '],
} as const satisfies Record<string, readonly [RefusalScope, string]>

/** Formats the words of a refusal, with the prefix of its kind. */
export function refusalWords(kind: keyof typeof begins, words: string): string {
  return `${begins[kind][1]}${words}`
}

/** Whether the words of a refusal of a path are those of a 404, which may mean a single series. */
export const isGone = (words: string): boolean => words.startsWith(begins.gone[1])

/** Formats the reason of a window in which a series that has points is refused. */
export function alarmReason(since: Instant, words: string): string {
  return `refused since ${formatInstant(since)}: ${words}`
}

/** First words of the reason of a window whose series pitlake no longer waits for. */
export const withdrawnBegin = 'withdrawn, '

/** Formats the reason of a window of a series that pitlake no longer waits for. */
export function withdrawnReason(since: Instant, words: string): string {
  return `${withdrawnBegin}${alarmReason(since, words)}`
}

/** Returns the reason as it was while pitlake still waited for the series. */
export function standingWords(reason: string): string {
  return reason.startsWith(withdrawnBegin) ? reason.slice(withdrawnBegin.length) : reason
}

/**
 * The subject of a refusal: after 403 and 404 the whole path, unless others of its series are answered; after 400 one
 * series (a refused currency does not concern a different one), or only a range of a series that is answered elsewhere.
 */
export type RefusalScope = 'path' | 'range' | 'series'

/** A refusal of the provider as the reason of a coverage range records it. */
export interface Refusal {
  readonly scope: RefusalScope
  /** The status and the words of the provider. */
  readonly words: string
  /** Start of the refusals of a series that has points, in seconds; null if it never had any. */
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

/** Whether a reason records the refusal of a series that has points. */
export function isOfHeld(reason: string | null): boolean {
  return (readRefusal(reason)?.since ?? null) !== null
}

/** SQL condition: a row of coverage records the refusal of a series that has points, also a withdrawn one. */
export const refusedOfHeld = `state IN ('failed', 'unsupported')
  AND (reason LIKE 'refused since %' OR reason LIKE 'withdrawn, refused since %')`

/**
 * Time for which a refused series with points is requested in each run; afterwards daily, like any path. A day is
 * counted as 22 hours, so that cron may start a little early.
 */
const eagerPatience = day
const dailyPatience = 22 * 3600
/** Time after which a refusal of a series or range that is not an alarm is tried again. */
export const refusalPatience = 30 * day

/** A refusal that no later answer has overtaken. */
export interface StandingRefusal extends Refusal {
  /** The state of the coverage range that records it. */
  readonly state: 'unsupported' | 'failed'
  /** The reason of that range, from which the other fields were read. */
  readonly reason: string
  /** Time of the last request to the provider, seconds. */
  readonly asked_at: Instant
  /** Id of that request; null if none is recorded. */
  readonly request: string | null
}

/** The recorded answer of a coverage range, without the range. */
export type RecordedAnswer = Omit<WindowAnswer, 'since' | 'until'>

/** Returns the newest refusal of a series or path among its answers, unless the provider has answered since. */
export function standingRefusal(answers: readonly RecordedAnswer[]): StandingRefusal | null {
  let newest: StandingRefusal | null = null
  let answered = Number.NEGATIVE_INFINITY
  for (const { state, reason, asked_at, request } of answers) {
    if (state === 'covered' || state === 'empty') answered = Math.max(answered, asked_at)
    if ((state !== 'unsupported' && state !== 'failed') || asked_at < (newest?.asked_at ?? Number.NEGATIVE_INFINITY))
      continue
    const refusal = readRefusal(reason)
    if (refusal === null || refusal.scope === 'range') continue
    // A refusal for which it is not known yet whether it concerns the series or the range.
    if (state === 'failed' && refusal.since === null) continue
    newest = { ...refusal, state, reason: reason ?? '', asked_at, request }
  }
  return newest !== null && newest.asked_at > answered ? newest : null
}

/** Whether a standing refusal should be tried again now. A time in the future is ignored, because a clock was wrong. */
export function isTriedAgain({ scope, since, withdrawn, asked_at }: StandingRefusal, now: Instant): boolean {
  const ago = now - asked_at
  if (ago < -day) return true
  if (since === null || withdrawn) return ago >= (scope === 'path' ? dailyPatience : refusalPatience)
  return now - since < eagerPatience || ago >= dailyPatience
}
