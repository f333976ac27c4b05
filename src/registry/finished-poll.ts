import { parseMicros } from '../time.ts'
import type { CommitDeps } from '../ledger/commit.ts'
import type { Provider, RequestRow } from '../ledger/entry.ts'
import type { Ledger } from '../ledger/ledger.ts'
import type { Lines } from './lines.ts'
import type { Spool } from '../ledger/sweep.ts'
import type { Resources } from './bodies.ts'
import type { Poll } from './history.ts'
import type { RawBody } from './asking.ts'
import type { WithEngine } from './engines.ts'
import type { PassingFacts, Tags } from './state.ts'

/** What a poll, one reading of the registry, is committed with. */
export interface PollContext {
  readonly ledger: Ledger
  readonly withEngine: WithEngine
  readonly spool: Spool
  readonly resources: Resources
  readonly run: string
  readonly job: string
  readonly provider: Provider
  readonly providerMoved: boolean
  readonly rawDays: number
  readonly deps: CommitDeps
}

/** A poll that is over, ready to become a version. */
export interface FinishedPoll {
  readonly poll: Poll
  readonly lines: Lines
  readonly as_of: string | null
  readonly raws: readonly RawBody[]
  /** Where the feed goes on afterwards. */
  readonly cursor: string
  readonly epoch: number
  /** Set where a whole state was read: it becomes a dated snapshot. */
  readonly whole: 'snapshot' | 'lists' | null
  readonly disagreeing: readonly string[]
  readonly requests: readonly RequestRow[]
  readonly passing: Partial<PassingFacts>
  readonly tags: Tags
}

/** Up to when a body says that it speaks, as it says it and in microseconds; null where that cannot be read. */
export function asOf({ as_of }: FinishedPoll): { readonly as_of: string | null; readonly as_of_at: number | null } {
  return { as_of, as_of_at: as_of === null ? null : (parseMicros(as_of) ?? null) }
}
