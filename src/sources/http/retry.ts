import type { Outcome } from './outcome.ts'

/** How often and how long one request may be repeated. */
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
  /** As `totalMs`, for a request that ends in faults: a provider that lets others wait is not requested for long. */
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

/** What one request has cost so far. */
export interface Tries {
  /** Tries that ended in a fault of transport or server. */
  readonly faults: number
  /** Tries that ended in 429. */
  readonly limited: number
  /** Tries and backoffs together, milliseconds. */
  readonly spentMs: number
}

/** Before the first try. */
export const noTries = { faults: 0, limited: 0, spentMs: 0 }

/** What to do after a try. */
type Next = { readonly kind: 'stop' } | { readonly kind: 'retry'; readonly waitMs: number; readonly tries: Tries }

/**
 * Whether to try again, and after how long: full jitter (`random` in [0, 1)) on top of what the provider asks for,
 * which is never shortened. Only 429 and faults of transport or server are repeated.
 */
export function afterTry(policy: RetryPolicy, tries: Tries, outcome: Outcome, random: () => number): Next {
  if (outcome.kind !== 'again' && outcome.kind !== 'limited') return { kind: 'stop' }
  // A limited snapshot has a way around it; waiting is the caller's choice.
  if (outcome.kind === 'limited' && outcome.code === 'snapshot_limit') return { kind: 'stop' }
  const fault = outcome.kind === 'again' ? 1 : 0
  const faults = tries.faults + fault
  const limited = tries.limited + 1 - fault
  if (faults >= policy.attempts || limited >= policy.limitedAttempts) return { kind: 'stop' }
  const jitter = backoff(policy, fault === 1 ? faults : limited, random)
  // Who is told how long to wait needs no more than spread on top of it.
  const waitMs =
    outcome.kind === 'limited' && outcome.waitMs !== null
      ? Math.min(jitter, Math.max(policy.baseMs, outcome.waitMs))
      : jitter
  const spentMs = tries.spentMs + outcome.requestMs + waitMs
  if (spentMs > (fault === 1 ? policy.faultMs : policy.totalMs)) return { kind: 'stop' }
  return { kind: 'retry', waitMs: (outcome.waitMs ?? 0) + waitMs, tries: { faults, limited, spentMs } }
}

/** Full jitter: anywhere between nothing and the doubled base. */
function backoff(policy: RetryPolicy, failed: number, random: () => number): number {
  return Math.round(random() * Math.min(policy.capMs, policy.baseMs * 2 ** (failed - 1)))
}
