import { LakeError } from '../../base/errors.ts'
import { formatInstant, type Instant } from '../../base/time.ts'
import type { Reply } from './http.ts'
import { ageOf, dateOf } from './governor.ts'

/** The difference between the local clock and the provider's. */
export interface Skew {
  /** Seconds; positive if the local clock is ahead. */
  readonly seconds: number
  /** The local clock when the answer's head was read. */
  readonly local: Instant
  /** The provider's clock at the same moment (`Date` and `Age`). */
  readonly provider: Instant
}

/** Difference of the clocks, in seconds, above which it is reported. */
const reportedSeconds = 600
/** Clocks that differ by more end a run. */
export const endingSeconds = 3600
const lastInstant = Date.UTC(9999, 11, 31) / 1000

/** Dependencies of watching the clocks of a run. */
interface SkewWatch {
  /** Returns the microseconds since 1970 by the wall clock, which dates commits. */
  readonly nowMicros: () => number
  /**
   * Returns the time in milliseconds since 1970 by the clock that dates answers; it does not step back, nor run while
   * the machine sleeps.
   */
  readonly now: () => number
  /**
   * Returns whether the lake is synthetic according to its ledger; undefined if the ledger does not state it yet, so
   * that the answer decides.
   */
  readonly synthetic: () => boolean | undefined
  /** Called once a run at most. */
  readonly onSkew: (skew: Skew) => void
}

/** The headers and the outcome of an answer. */
type Replied = Pick<Reply, 'headers' | 'outcome'>

/**
 * Judges the clocks by each answer that shows one (`Date` and `Age`). Nothing may be dated by a clock that is more than
 * an hour off: the first answer to show it ends the run, unless the data are synthetic. Once one was right, a later
 * one is a stale copy, which settles no more than it knew.
 */
export function watchSkew({ nowMicros, now, synthetic, onSkew }: SkewWatch): <T extends Replied>(reply: T) => T {
  let judged = false
  let isReported = false
  return (reply) => {
    const skew = skewOf(reply, nowMicros() / 1000 - now())
    if (skew === null) return reply
    const far = Math.abs(skew.seconds)
    if (far > endingSeconds && !judged && !(synthetic() ?? callsItselfSandbox(reply))) throw clocksApart(skew)
    judged = true
    if (far > reportedSeconds && !isReported) {
      isReported = true
      onSkew(skew)
    }
    return reply
  }
}

const callsItselfSandbox = ({ outcome }: Replied): boolean => 'sandbox' in outcome && outcome.sandbox !== null

/** Compares the clocks in an answer's headers with the local one; null if they show none. */
function skewOf({ headers, outcome }: Replied, wallAhead: number): Skew | null {
  const date = dateOf(headers)
  // The headers were read before the body, which may have taken long.
  if (date === null || !('at' in outcome)) return null
  const local = (outcome.at + wallAhead) / 1000
  const provider = Math.min(lastInstant, Math.floor(date / 1000) + ageOf(headers))
  return { seconds: Math.round(local - provider), local: Math.floor(local), provider }
}

/** Formats one line with both clocks. */
export function describeSkew({ seconds, local, provider }: Skew): string {
  const far = `${Math.abs(seconds)} s ${seconds > 0 ? 'ahead of' : 'behind'}`
  return `the local clock (${formatInstant(local)}) is ${far} the provider's (${formatInstant(provider)})`
}

function clocksApart(skew: Skew): LakeError {
  return new LakeError('incomplete', {
    subject: describeSkew(skew),
    expected: 'clocks less than an hour apart',
    next:
      'nothing of this answer was kept: set the clock of this machine (timedatectl), or see why the provider ' +
      'answers with an old Date, then run the same command again',
  })
}
