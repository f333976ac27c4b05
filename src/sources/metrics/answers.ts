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
  /** The request; null if none was sent. */
  readonly request: RequestRow | null
  /** The body to convert; null if the outcome alone resolves the window. */
  readonly body: AnswerBody | null
  /** The coverage that follows from the outcome alone. */
  readonly coverage: readonly CoverageRow[]
  /** Whether a body of this window was undecodable before. */
  readonly again: boolean
  /** Whether its parts were requested instead. */
  readonly cut?: true
}

/** An answered request that returned a body. */
export type AnswerWithBody = Answered & { readonly request: RequestRow; readonly body: AnswerBody }

/** Whether the answer has a body. */
export function hasBody(answered: Answered): answered is AnswerWithBody {
  return answered.body !== null && answered.request !== null
}

/** The result of committing a batch of answers. */
export interface BatchResult {
  readonly version: Version
  readonly coverage: readonly CoverageRow[]
  /** Single violations in the answers, each once, with those already on record; without acknowledged ones. */
  readonly violations: readonly Violation[]
  /** Ids of the incidents in the answers that no person has acknowledged. */
  readonly incidents: readonly string[]
  /** Number of differing or missing points that it recorded. */
  readonly recorded: number
  /** Ids of acknowledged violations and incidents in the answers. */
  readonly accepted: readonly string[]
  /** Outcome of each window that a verify compared. */
  readonly verified: readonly Verified[]
  /** Requests whose answer could not be used, by series, with the reason. */
  readonly unused: ReadonlyMap<string, string>
  /** The answers with a body. */
  readonly answersWithBody: readonly AnswerWithBody[]
  /** Windows to request once more. */
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

/** Builds an answer for a window that has none of its own. */
export function withoutAnswer(ask: Ask, coverage: readonly CoverageRow[], request: RequestRow | null = null): Answered {
  return { ask, request, body: null, coverage, again: false }
}
