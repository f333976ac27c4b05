import type { Outcome } from './outcome.ts'

/** Limits on the repetition of one request. */
export interface RetryPolicy {
  /** Tries that end in a fault of transport or server, the first one included. */
  readonly attempts: number
  /** Tries that may end in 429; those are waited out, not failed, hence a budget of their own. */
  readonly limitedAttempts: number
  /** The first backoff is at most this, the next at most twice as much, and so on up to `capMs`; milliseconds. */
  readonly baseMs: number
  /** The longest backoff, milliseconds. */
  readonly capMs: number
  /** Tries and backoffs of one request together, milliseconds; waits that the provider dictates do not count. */
  readonly totalMs: number
  /**
   * Limit like `totalMs` for a request that ends in faults; shorter, because the provider does not demand these waits.
   */
  readonly faultMs: number
}

/** The policy unless a caller gives a different one. */
export const usualRetries = {
  attempts: 5,
  limitedAttempts: 12,
  baseMs: 500,
  capMs: 30_000,
  totalMs: 900_000,
  faultMs: 60_000,
}

/** The cost of one request so far. */
export interface Tries {
  /** Tries that ended in a fault of transport or server. */
  readonly faults: number
  /** Tries that ended in 429. */
  readonly limited: number
  /** Tries and backoffs together, milliseconds. */
  readonly spentMs: number
}

/** The cost before the first try. */
export const noTries = { faults: 0, limited: 0, spentMs: 0 }

/** The step after a try: stop, or wait and try again. */
type Next = { readonly kind: 'stop' } | { readonly kind: 'retry'; readonly waitMs: number; readonly tries: Tries }

/**
 * Decides whether to try again, and after how long: full jitter (`random` in [0, 1)) on top of the wait that the
 * provider demands, which is never shortened. Only 429 and faults of transport or server are repeated.
 */
export function afterTry(policy: RetryPolicy, tries: Tries, outcome: Outcome, random: () => number): Next {
  if (outcome.kind !== 'again' && outcome.kind !== 'limited') return { kind: 'stop' }
  // A limited snapshot can be replaced by the lists; waiting is the caller's choice.
  if (outcome.kind === 'limited' && outcome.code === 'snapshot_limit') return { kind: 'stop' }
  const fault = outcome.kind === 'again' ? 1 : 0
  const faults = tries.faults + fault
  const limited = tries.limited + 1 - fault
  if (faults >= policy.attempts || limited >= policy.limitedAttempts) return { kind: 'stop' }
  const jitter = backoff(policy, fault === 1 ? faults : limited, random)
  // After a wait that the provider names, the jitter only spreads the requests.
  const waitMs =
    outcome.kind === 'limited' && outcome.waitMs !== null
      ? Math.min(jitter, Math.max(policy.baseMs, outcome.waitMs))
      : jitter
  const spentMs = tries.spentMs + outcome.requestMs + waitMs
  if (spentMs > (fault === 1 ? policy.faultMs : policy.totalMs)) return { kind: 'stop' }
  return { kind: 'retry', waitMs: (outcome.waitMs ?? 0) + waitMs, tries: { faults, limited, spentMs } }
}

/** Returns a backoff with full jitter: anywhere between nothing and the doubled base. */
function backoff(policy: RetryPolicy, failed: number, random: () => number): number {
  return Math.round(random() * Math.min(policy.capMs, policy.baseMs * 2 ** (failed - 1)))
}
