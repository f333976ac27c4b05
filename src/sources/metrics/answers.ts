import type { BodyOutcome } from '../http/outcome.ts'
import type { Version } from '../../lake/ledger/commit.ts'
import type { CoverageRow, RequestRow, Verified, Violation } from '../../lake/ledger/entry.ts'
import type { Body } from '../points/conversion-types.ts'
import type { Ask } from './plan.ts'

/** The stored body of an answer; `lexed` if its bytes were read already. */
export type AnswerBody = BodyOutcome & Pick<Body, 'lexed'>

/** One answered request that waits for the next commit. */
export interface Answered {
  readonly ask: Ask
  /** Null where nothing was asked. */
  readonly request: RequestRow | null
  /** The body to convert; null where the outcome alone settles the window. */
  readonly body: AnswerBody | null
  /** The coverage that follows from the outcome alone. */
  readonly coverage: readonly CoverageRow[]
  /** Whether a body of this window was undecodable before. */
  readonly again: boolean
  /** Whether its parts were asked for instead. */
  readonly cut?: true
}

/** An answered request that returned a body. */
export type AnswerWithBody = Answered & { readonly request: RequestRow; readonly body: AnswerBody }

/** Whether there is a body. */
export function hasBody(answered: Answered): answered is AnswerWithBody {
  return answered.body !== null && answered.request !== null
}

/** The result of committing a batch of answers. */
export interface BatchResult {
  readonly version: Version
  readonly coverage: readonly CoverageRow[]
  /** Each single violation seen, once, also those that were on record already; not those that somebody has accepted. */
  readonly violations: readonly Violation[]
  /** The ids of incidents of which something was seen, and that nobody has accepted. */
  readonly incidents: readonly string[]
  /** How many points that differ or lack it put on record. */
  readonly recorded: number
  /** The ids of accepted ones that were seen again. */
  readonly accepted: readonly string[]
  /** Outcome of each window that a verify compared. */
  readonly verified: readonly Verified[]
  /** Requests whose answer could not be used, by series, with the reason. */
  readonly unused: ReadonlyMap<string, string>
  /** The answers with a body. */
  readonly answersWithBody: readonly AnswerWithBody[]
  /** Windows to be asked once more. */
  readonly again: readonly Retry[]
}

/**
 * A window to request once more: its body could not be decoded, or its answer is in doubt. The first answer is used if
 * no better one arrives.
 */
export interface Retry {
  readonly ask: Ask
  readonly doubted: AnswerWithBody | null
}

/** An answer for a window that has none of its own. */
export function withoutAnswer(ask: Ask, coverage: readonly CoverageRow[], request: RequestRow | null = null): Answered {
  return { ask, request, body: null, coverage, again: false }
}
