import type { LakeError } from '../errors.ts'
import { type Ended, endedEarly } from '../ledger/requests.ts'

/** What has come of a run so far, nothing yet; names are relied on. */
export function newTally(version: number) {
  return {
    version,
    /** What the snapshot of this run was put together from; null without one. */
    source: null as 'snapshot' | 'lists' | null,
    /** The date of the snapshot that was added; null when it added nothing. */
    snapshot_date: null as string | null,
    /** Events of types that this program does not know, by type. */
    unknown: Object.create(null) as Record<string, number>,
    events: 0,
    pages: 0,
    opened: 0,
    updated: 0,
    closed: 0,
    files_added: 0,
    findings: 0,
    schema_changes: 0,
    new_epoch: false,
  }
}

export type Tally = ReturnType<typeof newTally>

/** What scripts read of a registry run; names are relied on. */
export interface RegistrySummary extends Readonly<Tally>, Ended {
  readonly run: string
  readonly requests: number
  readonly epoch: number
  readonly records: Readonly<Record<string, number>>
}

/** The error that a registry run ends with after its work, with what to do next; null where all is done. */
export function verdictOf(summary: Ended): LakeError | null {
  const next = 'nothing half-read was applied; run the same command again'
  return endedEarly('registry', summary, { subject: 'the registry was not read to the end', next })
}
