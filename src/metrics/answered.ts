import type { Outcome } from '../net/outcome.ts'
import type { CoverageRow, RequestRow } from '../ledger/entry.ts'
import type { Ask } from './plan.ts'

/** One answered request that waits for the next commit. */
export interface Answered {
  readonly ask: Ask
  /** Null where nothing was asked. */
  readonly request: RequestRow | null
  /** The body to convert; null where the outcome alone settles the window. */
  readonly body: Extract<Outcome, { kind: 'body' }> | null
  /** What the outcome alone says. */
  readonly coverage: readonly CoverageRow[]
  /** Whether a body of this window was undecodable before. */
  readonly again: boolean
}
