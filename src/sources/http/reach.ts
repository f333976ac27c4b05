import { describeOutcome, type Outcome } from './outcome.ts'

/** Number of requests, and time, without a useful answer after which a provider counts as unreachable. */
const mostVain = 20
const vainMs = 120_000
/** Who is told how long to wait gets this long afterwards. */
const afterWaitMs = 60_000
/** From the third fault in a row on each request waits longer, at most so long. */
const unslowed = 2
const slowestMs = 5_000

/**
 * Whether an API answers at all, learnt from the requests of all its connections, and how long to spare it. `now` is in
 * milliseconds since 1970.
 */
export interface Reach {
  /** Before a request is sent: milliseconds to wait, a landing to wait for, or why nothing is sent any more. */
  readonly next: (now: number) => number | Promise<void> | { readonly words: string }
  /** Milliseconds left in which the first useful answer has to come; null once one came. */
  readonly leftMs: (now: number) => number | null
  /** Records that a request was sent. */
  readonly sent: () => void
  /** Records how a request ended; null if this side failed. */
  readonly landed: (outcome: Outcome | null, now: number) => void
  /** Why nothing is sent any more; null while something may be. */
  readonly gaveUp: () => string | null
}

/** A new reach: no answer is known yet. */
export function newReach(): Reach {
  /** Whether anything useful ever came, faults since, until when they may go on, and until when nobody sends. */
  let answered = false
  let vain = 0
  let until = 0
  let blocked = 0
  let inFlight = 0
  let words = ''
  let isTaken = false
  const waiting: (() => void)[] = []
  const fault = (outcome: Outcome, now: number): void => {
    const waitMs = 'waitMs' in outcome ? outcome.waitMs : null
    if (vain === 0) until = now - ('requestMs' in outcome ? outcome.requestMs : 0) + vainMs
    if (waitMs !== null) until = Math.max(until, now + waitMs + afterWaitMs)
    vain++
    words = describeOutcome(outcome)
    if (vain > unslowed) blocked = now + Math.min(slowestMs, 250 * 2 ** (vain - unslowed - 1))
  }
  return {
    next: (now: number): number | Promise<void> | { readonly words: string } => {
      const many = vain >= mostVain
      const long = vain > 0 && now >= until
      // Of one that has answered before some paths may fail for good: it gets both.
      isTaken ||= answered ? many && long : many || long
      if (isTaken) return { words }
      if (!answered && vain + inFlight >= mostVain) return new Promise((resolve) => void waiting.push(resolve))
      return Math.max(0, Math.ceil(blocked - now))
    },
    leftMs: (now: number): number | null => (answered ? null : vain === 0 ? vainMs : Math.max(1_000, until - now)),
    sent: (): void => void inFlight++,
    landed: (outcome: Outcome | null, now: number): void => {
      inFlight--
      if (outcome !== null && isFault(outcome)) fault(outcome, now)
      else if (outcome !== null && isUseful(outcome)) [answered, vain, blocked] = [true, 0, 0]
      for (const wake of waiting.splice(0)) wake()
    },
    gaveUp: (): string | null => (isTaken ? words : null),
  }
}

/**
 * What no provider that works would say: a fault of transport or server, a page or nothing, a way to somewhere else.
 */
function isFault(outcome: Outcome): boolean {
  if (outcome.kind === 'body') return outcome.vain !== undefined
  return (
    outcome.kind === 'again' ||
    outcome.kind === 'unexpected' ||
    (outcome.kind === 'too_large' && outcome.status === 504)
  )
}

/** A limit says nothing of whether anything useful will come. */
const isUseful = ({ kind }: Outcome): boolean => kind !== 'limited' && kind !== 'parked' && kind !== 'stopped'
