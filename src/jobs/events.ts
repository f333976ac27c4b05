import type { AskEvent } from '../fetch/ask.ts'
import type { Outcome } from '../fetch/outcome.ts'
import type { Skew } from '../fetch/skew.ts'
import type { CoverageState } from '../lake/entry.ts'
import type { Ask, Plan } from '../plan.ts'

/** What happens while a fetch runs, for progress and the run's log. */
export type IngestEvent =
  | { readonly kind: 'planned'; readonly plan: Plan }
  /** A request is about to be asked, under this id. */
  | { readonly kind: 'request'; readonly id: string; readonly ask: Ask; readonly url: string }
  | { readonly kind: 'asking'; readonly event: AskEvent }
  /** A request has its final outcome. */
  | { readonly kind: 'answered'; readonly ask: Ask; readonly outcome: Outcome }
  /** A window of the plan is answered, with all the parts that it was cut into. */
  | { readonly kind: 'settled'; readonly ask: Ask }
  | {
      readonly kind: 'committed'
      readonly version: number
      readonly points: number
      readonly files: number
      readonly windows: Readonly<Record<CoverageState, number>>
      readonly violations: number
    }
  /** The clocks of this machine and of the provider differ by more than ten minutes. */
  | { readonly kind: 'skew'; readonly skew: Skew }
  /** The listing of assets was asked: how many it names, and how many of them are new or changed. */
  | { readonly kind: 'listing'; readonly assets: number | null; readonly fresh: number; readonly outcome: string }
