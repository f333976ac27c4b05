import type { RefusalScope } from '../ledger/refusals.ts'

/** Why asking ended before the plan did. */
export type StoppedBy = 'signal' | 'max_requests' | 'budget' | 'quota' | 'unauthorised' | 'unreachable'

/** A refusal, and what it is about. */
export interface Refused {
  readonly scope: RefusalScope
  readonly words: string
}

/** What the requests so far have taught. */
export interface AskingState {
  asked: number
  /**
   * What is not asked any more: a path (403, 404) to series without points, a path to those with points, or one series
   * (400), with the refusal. A refusal of a series that never answered says nothing of those that did.
   */
  readonly closed: Map<string, Refused>
  /** Series that were answered in this run. */
  readonly answering: Set<string>
  /** Up to where short windows of a series were refused, although others are answered. */
  readonly refusedBefore: Map<string, { readonly until: number; readonly words: string }>
  /** Failures to connect in a row. */
  unreachable: number
  /** Whether anything at all has been answered. */
  reached: boolean
  /** What the windows asked so far cost by their plan. */
  priced: number
  /** First answers, and how many of them were 403 on how many paths. */
  first: { answers: number; forbidden: number; paths: Set<string> }
  stopped: { by: StoppedBy; until: number | null; words: string | null } | null
}

/** A fresh state. */
export function newAskingState(): AskingState {
  return {
    asked: 0,
    closed: new Map(),
    answering: new Set(),
    refusedBefore: new Map(),
    unreachable: 0,
    reached: false,
    priced: 0,
    first: { answers: 0, forbidden: 0, paths: new Set() },
    stopped: null,
  }
}
