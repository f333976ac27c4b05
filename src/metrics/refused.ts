import type { CoverageRow } from '../ledger/entry.ts'
import { isPlain } from '../ledger/coverage.ts'
import { type Ask, horizonOf } from './plan.ts'
import { alarmPatience, alarmReason, type RefusalScope, type Standing, withdrawnReason } from '../ledger/refusals.ts'
import { day, type Instant, longestSeconds, step, type Weekday } from '../time.ts'
import { minus } from '../windows.ts'
import { type Asked, settleWhole } from './settle.ts'

/** What is known of a series before it is asked. */
export interface Known {
  readonly points: number
  readonly coverage: readonly CoverageRow[]
  /** The refusal that stands against it. */
  readonly standing: Standing | null
}

/**
 * What a refusal says of the range that was asked. A series that never had a point is `unsupported`. One that has points
 * is failed, an alarm since its first refusal, and withdrawn after 30 days; where it is covered it stays so.
 */
export function settleRefusal(
  ask: Ask,
  refusal: { readonly scope: RefusalScope; readonly words: string },
  { points, coverage, standing }: Known,
  asked: Asked,
): CoverageRow[] {
  const proven = coverage.filter((row) => isPlain(row) || row.state === 'empty')
  const rows = (state: 'unsupported' | 'failed', reason: string): CoverageRow[] =>
    settleWhole(ask, state, reason, asked).flatMap((row) =>
      minus([row], points > 0 ? proven : []).map((window) => ({ ...row, ...window })),
    )
  if (refusal.scope === 'range') return rows('unsupported', refusal.words)
  // The first words stay, lest another request id in them counts as news.
  const isSame = standing !== null && standing.scope === refusal.scope && (points <= 0 || standing.since !== null)
  const words = isSame ? standing.words : refusal.words
  if (points <= 0) return rows('unsupported', words)
  const since = standing?.since ?? asked.at
  if (standing?.withdrawn === true || asked.at - since >= alarmPatience)
    return rows('unsupported', withdrawnReason(since, words))
  return rows('failed', alarmReason(since, words))
}

/** A window of at most so many points is short: its length is no reason to refuse it. */
const shortPoints = 100
const probePoints = 10

/** Whether the window itself is short, or the endpoint takes no shorter one. */
export function isShort({ window, points, endpoint }: Ask): boolean {
  return window === null || !endpoint.since || !endpoint.until || points <= shortPoints
}

/** Whether the window is not worth halving: what it holds is less than what finding the border costs. */
export function isSmall({ window, points, endpoint }: Ask): boolean {
  return window === null || !endpoint.since || !endpoint.until || points <= probePoints
}

/** Whether the window ends so lately that a provider of any history has it. */
export function isRecent({ window, interval }: Ask, now: Instant): boolean {
  return window === null || now - window.until <= Math.max(90 * day, 10 * longestSeconds(interval))
}

/** The shortest and newest window that the provider should have, to learn what was refused: the series or the range. */
export function probeOf(ask: Ask, now: Instant, weekStart: Weekday): Ask {
  const { final } = horizonOf(ask.endpoint, ask.interval, now, weekStart)
  const window = { since: step(final, ask.interval, -probePoints), until: final }
  // It settles what it brings; what it is refused is final by the window that it was asked for.
  return { ...ask, window, settles: { since: window.since, until: window.since }, points: probePoints }
}
