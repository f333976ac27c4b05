import type { AskEvent } from '../net/ask.ts'
import type { Outcome } from '../net/outcome.ts'
import type { Skew } from '../net/skew.ts'
import type { Ask, Plan } from './plan.ts'
import type { WindowCounts } from './tally.ts'

/** What happens while a fetch runs, for progress and the run's log. */
export type IngestEvent =
  | { readonly kind: 'planned'; readonly plan: Plan }
  /** A request is about to be asked, under this id. */
  | { readonly kind: 'request'; readonly id: string; readonly ask: Ask }
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
      readonly windows: WindowCounts
      readonly violations: number
    }
  /** The clocks of this machine and of the provider differ by more than ten minutes. */
  | { readonly kind: 'skew'; readonly skew: Skew }
  /** The listing of assets was asked: how many it names, and how many of them are new or changed. */
  | { readonly kind: 'listing'; readonly assets: number | null; readonly fresh: number; readonly outcome: string }
  /** Metadata were asked for: of how many paths, and how many of them have any. */
  | { readonly kind: 'metadata'; readonly asked: number; readonly read: number }
  /** New points of a series hold integers that a double does not: their text is in `extra`. */
  | { readonly kind: 'beyond'; readonly series: string; readonly points: number }

/** How an event of a run stands in its log; null where the connection notes it, or only a detailed log holds it. */
export function logged(event: IngestEvent, detailed: boolean): readonly [name: string, facts: object] | null {
  const { kind, ...facts } = event
  switch (event.kind) {
    case 'planned':
      return [kind, { ...event.plan.totals, blocked: event.plan.blocked.length, notes: event.plan.notes }]
    case 'request':
    case 'asking':
    case 'skew':
      return null
    case 'answered':
      return detailed ? ['outcome', { series: event.ask.series.id, outcome: event.outcome.kind }] : null
    case 'settled':
      return detailed ? [kind, { series: event.ask.series.id }] : null
    case 'committed':
      return ['commit', facts]
    case 'beyond':
      return ['beyond a double', facts]
    case 'listing':
    case 'metadata':
      return [kind, facts]
    default:
      return event satisfies never
  }
}
