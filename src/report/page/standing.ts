import type { Summary } from '../../ledger/held.ts'
import type { BeginsLater } from '../../metrics/tally.ts'
import type { RequestTotals } from '../../ledger/held-runs.ts'
import type { RegistryFacts } from '../../registry/status.ts'

/** How far the newest points of some series are from what the rule makes due now. */
export interface FreshCounts {
  /** Everything that is due is held. */
  readonly fresh: number
  /** Asked since it became due, not there yet. */
  readonly awaited: number
  /** Due, and not asked since. */
  readonly behind: number
  /** Asked in vain for longer than the endpoint's tolerance. */
  readonly stopped: number
}

/** Intervals since the first point of each series: due by the rule, held, and asked again with the same answer. */
export interface CoverageCounts {
  readonly due: number
  readonly held: number
  readonly verified: number
}

/** What a run costs and brings; null where nobody says. */
export interface RunCost {
  readonly requests: number | null
  readonly points: number | null
  readonly credits: number | null
}

/** One run: its plan against what it did. */
export interface RunFact {
  readonly id: string
  readonly job: string
  readonly command: string
  /** RFC 3339. */
  readonly started_at: string | null
  readonly seconds: number | null
  readonly stopped_by: string | null
  readonly plan: RunCost
  readonly actual: RunCost
}

/** What a reason not to trust the lake blindly is about. */
export type ReasonKind =
  | 'nothing'
  | 'damage'
  | 'violations'
  | 'incidents'
  | 'findings'
  | 'refused'
  | 'withdrawn'
  | 'observed_again'
  | 'failed'
  | 'not_asked'
  | 'late'
  | 'stopped'
  | 'gaps'
  | 'begins'
  | 'feed'
  | 'published'
  | 'synthetic'
  | 'running'
  | 'rules'
  | 'verified'

/** What came of the last publish to a destination. */
export interface PublishedFact {
  readonly destination: string
  /** RFC 3339. */
  readonly at: string
  /** Null while it goes on, or where it was killed. */
  readonly exit_code: number | null
  /** Files that the tables named and that were gone, cut or changed there. */
  readonly missing: number
  readonly changed: number
}

/** One reason not to trust the lake blindly, and what to type. */
export interface Reason {
  /** What it is about; names are relied on by scripts. */
  readonly kind: ReasonKind
  /** `no` forbids, `look` wants a look, `note` is only said. */
  readonly level: 'no' | 'look' | 'note'
  /** What `status --check` says of it; null for what is only said. */
  readonly word: 'integrity' | 'stale' | 'look' | null
  /** How many of them there are, and since when there is the oldest (RFC 3339; null where nobody can say). */
  readonly count: number
  readonly since: string | null
  readonly text: string
  readonly next: string | null
}

/** What `status --json` prints; names are relied on by scripts. */
export interface Standing extends Omit<Summary, 'findings' | 'newest'> {
  /** Who answered, as the lake wrote it down; null while nothing is committed. */
  readonly provider: string | null
  readonly providers: { readonly metrics: string | null; readonly registry: string | null }
  readonly synthetic: boolean
  /** What the folder is a mirror of; null for a lake of its own. */
  readonly mirror_of: string | null
  /** RFC 3339; null while there is no version. */
  readonly committed_at: string | null
  readonly clock_findings: number
  /** The largest stored `t`, RFC 3339. */
  readonly newest: string | null
  readonly coverage: CoverageCounts & { readonly share: number | null; readonly verified_share: number | null }
  /** How long the most overdue point that was not asked for has been due, in seconds. */
  readonly freshness: FreshCounts & { readonly overdue_seconds: number }
  readonly verified: { readonly windows: number; readonly differing: number; readonly last_at: string | null }
  /** Changes of the types of values, as the view of that name tells them of metrics. */
  readonly schema_changes: number
  /** Series that have points and are refused now (with their windows and the first refusal), and withdrawn ones. */
  readonly refused: {
    readonly series: number
    readonly windows: number
    /** RFC 3339. */
    readonly since: string | null
    readonly words: string | null
    readonly withdrawn: number
    /** Those of them of which nobody took note. */
    readonly unaccepted: number
  }
  /**
   * The longest window that lacks points between others, how many series begin later than they were asked for, and the
   * first of them.
   */
  readonly holes: {
    readonly longest: {
      readonly metric: string
      readonly asset: string
      readonly points: number
      /** RFC 3339. */
      readonly since: string
      readonly until: string
    } | null
    readonly later: number
    readonly begins: BeginsLater | null
  }
  /** What runs planned and did not ask, as far as it is selected now; also of runs that were killed. */
  readonly not_asked: {
    readonly series: number
    readonly windows: number
    /** RFC 3339. */
    readonly since: string | null
  }
  /** Since when there is the oldest of what is counted: its `t` of gaps, else when it was seen. RFC 3339. */
  readonly oldest: Readonly<
    Record<'violations' | 'incidents' | 'findings' | 'withdrawn' | 'failed' | 'gaps', string | null>
  >
  /** The last publish to each destination. */
  readonly published: readonly PublishedFact[]
  /** `per_minute` is what the configuration allows; `credits_today` counts from midnight UTC. */
  readonly requests: RequestTotals & {
    readonly per_minute: number
    readonly credits_today: number
    readonly by_outcome: readonly { readonly api: string; readonly outcome: string; readonly requests: number }[]
  }
  /**
   * `records`: open rows by table; `schema_changes`: null where they cannot be read, and so are `findings`: what verifies
   * found and nobody accepted nor a later state settled, and what was accepted.
   */
  readonly registry: RegistryFacts & {
    readonly records: Readonly<Record<string, number>>
    readonly schema_changes: number | null
    readonly findings: number | null
    readonly findings_accepted: number | null
  }
  /**
   * Availability rules that the arrivals break, as `audit availability` counts them, and the stored points that imprecise
   * ones date; null where the arrivals were not read.
   */
  readonly rules: { readonly disproved: number; readonly imprecise: number; readonly imprecise_points: number } | null
  readonly stamps: number
  /** Live files that are not there or have another size. */
  readonly files_damaged: number
  /** Months of series whose points were lost with a file and observed again; `waiting`: those that did not come again. */
  readonly observed_again: { readonly months: number; readonly points: number; readonly waiting: number }
  /** Jobs that are at work now. */
  readonly running: readonly string[]
  readonly last_run: RunFact | null
  readonly trust: 'yes' | 'look' | 'no'
  readonly reasons: readonly Reason[]
}
