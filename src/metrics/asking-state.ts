import type { RefusalScope } from '../ledger/refusals.ts'
import type { Window } from '../windows.ts'

/** Why asking ended before the plan did. */
export type StoppedBy = 'signal' | 'max_requests' | 'budget' | 'quota' | 'unauthorised' | 'unreachable'

/** A refusal, and what it is about. */
export interface Refused {
  readonly scope: RefusalScope
  readonly words: string
}

/** What the requests so far have taught: nothing yet. */
export function newAskingState() {
  return {
    asked: 0,
    /**
     * What is not asked any more: a path (403, 404) to series without points, a path to those with points, or one series
     * (400), with the refusal. A refusal of a series that never answered says nothing of those that did.
     */
    closed: new Map<string, Refused>(),
    /** The first request of a refused path, by path: all others wait for what it is told. */
    probes: new Map<string, Promise<unknown>>(),
    /** Series that were answered in this run. */
    answering: new Set<string>(),
    /** Up to where short windows of a series were refused, although others are answered. */
    refusedBefore: new Map<string, { readonly until: number; readonly words: string }>(),
    /** The windows that were answered, whatever the answers settle, by series. */
    settled: new Map<string, Window[]>(),
    /** Failures to connect in a row. */
    unreachable: 0,
    /** Whether anything at all has been answered. */
    reached: false,
    /** What the windows asked so far cost by their plan. */
    priced: 0,
    /** First answers, and how many of them were 403 on how many paths. */
    first: { answers: 0, forbidden: 0, paths: new Set<string>() },
    stopped: null as { by: StoppedBy; until: number | null; words: string | null } | null,
  }
}

export type AskingState = ReturnType<typeof newAskingState>
