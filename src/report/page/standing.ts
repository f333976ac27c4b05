/** Intervals since the first point of each series: due by the rule, held, and asked again with the same answer. */
export interface CoverageCounts {
  readonly due: number
  readonly held: number
  readonly verified: number
}

/** The registry side of the lake. */
export interface Registry {
  readonly first_snapshot: string | null
  readonly last_snapshot: string | null
  /** Epochs of the feed seen, from 1; 0 before the first snapshot. */
  readonly epoch: number
  /** When the change feed was last read to its end, RFC 3339. */
  readonly feed_at: string | null
  /** Open rows by table. */
  readonly records: Readonly<Record<string, number>>
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
  readonly plan: { readonly requests: number | null; readonly points: number | null; readonly credits: number | null }
  readonly actual: { readonly requests: number | null; readonly points: number | null; readonly credits: number | null }
}

/** One reason not to trust the lake blindly, and what to type. */
export interface Reason {
  /** `no` forbids, `look` wants a look, `note` is only said. */
  readonly level: 'no' | 'look' | 'note'
  /** What `status --check` says of it; null for what is only said. */
  readonly word: 'integrity' | 'stale' | 'look' | null
  readonly text: string
  readonly next: string | null
}

/** What `status --json` prints; names are relied on by scripts. */
export interface Standing {
  /** Who answered, as the lake wrote it down; null while nothing is committed. */
  readonly provider: string | null
  readonly providers: { readonly metrics: string | null; readonly registry: string | null }
  readonly synthetic: boolean
  readonly version: number
  /** RFC 3339; null while there is no version. */
  readonly committed_at: string | null
  readonly series: number
  readonly points: number
  readonly files: number
  readonly bytes: number
  readonly windows: {
    readonly covered: number
    readonly empty: number
    readonly unsupported: number
    readonly failed: number
  }
  readonly gaps: number
  readonly awaiting: number
  /** Those that nobody has accepted, and those that somebody has. */
  readonly violations: number
  readonly accepted: number
  readonly clock_findings: number
  /** The largest stored `t`, RFC 3339. */
  readonly newest: string | null
  readonly coverage: CoverageCounts & { readonly share: number | null; readonly verified_share: number | null }
  readonly freshness: {
    readonly fresh: number
    readonly awaited: number
    readonly behind: number
    readonly stopped: number
    /** How long the most overdue point that was not asked for has been due, in seconds. */
    readonly overdue_seconds: number
  }
  readonly verified: { readonly windows: number; readonly differing: number; readonly last_at: string | null }
  /** Series that have points and are refused now (with their windows and the first refusal), and withdrawn ones. */
  readonly refused: {
    readonly series: number
    readonly windows: number
    /** RFC 3339. */
    readonly since: string | null
    readonly words: string | null
    readonly withdrawn: number
  }
  readonly requests: {
    readonly total: number
    readonly credits: number
    readonly day: number
    readonly day_credits: number
    /** The busiest minute of the last 24 hours, and what the configuration allows. */
    readonly busiest_minute: number
    readonly per_minute: number
  }
  readonly registry: Registry
  readonly stamps: number
  /** Live files that are not there or have another size. */
  readonly files_damaged: number
  /** Jobs that are at work now. */
  readonly running: readonly string[]
  readonly last_run: RunFact | null
  readonly trust: 'yes' | 'look' | 'no'
  readonly reasons: readonly Reason[]
}
