import type { HeldVersion } from '../../ledger/held.ts'
import type { UniverseStep } from '../../registry/held.ts'
import type { FreshCounts, RunFact, Standing } from './standing.ts'
import type { StampVerdict } from '../../results/stamp.ts'

/** Publication lag of the points whose arrival is known, in seconds after the end of their interval. */
export interface Lag {
  readonly points: number
  readonly p05: number
  readonly p50: number
  readonly p95: number
  readonly p99: number
  readonly max: number
  /** The lag that the rule allows, in seconds; null where the catalogue has no rule for it. */
  readonly rule: number | null
  readonly basis: string
  /** How many points came later than the rule says. */
  readonly late: number
}

/** One endpoint: a row of the page. */
export interface EndpointFacts {
  readonly metric: string
  readonly series: number
  /** By month, from `Page.firstMonth` on: intervals due, held, and in failed windows. */
  readonly due: readonly number[]
  readonly held: readonly number[]
  readonly failed: readonly number[]
  readonly fresh: FreshCounts
  /** How long the most overdue point has been due, in seconds; 0 when nothing is. */
  readonly overdue: number
  readonly newest: number | null
  readonly lag: Lag | null
}

/** Endpoints that brought nothing at all, with the reason most often given. */
export interface Silent {
  readonly metric: string
  readonly state: string
  readonly reason: string | null
}

/** One bar of the histogram of lag divided by the rule's lag, on a logarithmic scale. */
export interface LagBin {
  /** Lower edge of the ratio. */
  readonly from: number
  readonly to: number
  readonly points: number
}

/** A stored value that the provider contradicts, or a record of the registry: then without t and interval. */
export interface ViolationFact {
  readonly metric: string
  readonly series: string
  readonly t: number | null
  readonly interval: string | null
  readonly kind: string
  readonly stored: string | null
  readonly offered: string | null
  /** Whether later answers no longer show it. */
  readonly passed: boolean
  /** Why somebody accepted it; null where nobody has. */
  readonly accepted: string | null
  /** Unix seconds. */
  readonly offeredAt: number
}

/** Everything that the page shows. */
export interface Page {
  /** Unix seconds. */
  readonly madeAt: number
  readonly program: string
  readonly standing: Standing
  /** Months since 1970-01 of the first column. */
  readonly firstMonth: number
  readonly months: number
  readonly endpoints: readonly EndpointFacts[]
  readonly silent: readonly Silent[]
  readonly lagBins: readonly LagBin[]
  /** Whether the data files could be read; if not, arrivals and universe are empty. */
  readonly readable: boolean
  readonly universe: readonly UniverseStep[]
  readonly violations: readonly ViolationFact[]
  /** Newest first. */
  readonly runs: readonly RunFact[]
  readonly versions: readonly Pick<HeldVersion, 'version' | 'committed_at' | 'job' | 'points_added' | 'files_added'>[]
  /** Newest first. */
  readonly stamps: readonly StampFact[]
  /** The address of the folder of their notes as seen from the page; null where nothing there can be opened. */
  readonly stampsAt: string | null
}

/** A stamped result. */
export interface StampFact {
  readonly id: string
  /** The name of its file. */
  readonly file: string
  readonly version: number
  /** Unix seconds. */
  readonly at: number
  readonly rows: number | null
  /** What is known of it; null where nothing was asked. */
  readonly verdict: StampVerdict | null
}
