import { describeOutcome, type Outcome } from './outcome.ts'

/** Number of requests, and time, without a useful answer after which a provider counts as unreachable. */
const mostVain = 20
const vainMs = 120_000
/** Time for further tries after a wait that the provider demanded, in milliseconds. */
const afterWaitMs = 60_000
/**
 * Number of faults in a row that do not slow requests down; after each further one they wait longer, at most
 * `slowestMs`.
 */
const unslowed = 2
const slowestMs = 5_000

/**
 * Whether an API answers at all, learnt from the requests of all its connections, and how long to spare it. `now` is in
 * milliseconds since 1970.
 */
export interface Reach {
  /**
   * Checks a request before it is sent: returns milliseconds to wait, another request to wait for, or the reason why no
   * further requests are sent.
   */
  readonly next: (now: number) => number | Promise<void> | { readonly words: string }
  /** Returns the milliseconds left for the first useful answer; null after it. */
  readonly leftMs: (now: number) => number | null
  /** Records that a request was sent. */
  readonly sent: () => void
  /** Records how a request ended; null if this side failed. */
  readonly landed: (outcome: Outcome | null, now: number) => void
  /** Returns the reason why no further requests are sent; null while they are. */
  readonly gaveUp: () => string | null
}

/** Creates a reach without any known answer. */
export function newReach(): Reach {
  /**
   * Whether any useful answer was received; then the faults since, the time until which they may continue, and the time
   * before which no request is sent.
   */
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
      // If the provider has answered before, some paths may fail permanently: both conditions must hold then.
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
 * Whether an outcome shows a provider that does not work: a fault of transport or server, a web page or an empty body,
 * a redirect.
 */
function isFault(outcome: Outcome): boolean {
  if (outcome.kind === 'body') return outcome.vain !== undefined
  return (
    outcome.kind === 'again' ||
    outcome.kind === 'unexpected' ||
    (outcome.kind === 'too_large' && outcome.status === 504)
  )
}

/** Whether an outcome shows a provider that works; a limit shows neither. */
const isUseful = ({ kind }: Outcome): boolean => kind !== 'limited' && kind !== 'parked' && kind !== 'stopped'
