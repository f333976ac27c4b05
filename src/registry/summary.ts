import { LakeError } from '../errors.ts'
import type { Connection } from '../ledger/connection.ts'
import type { Ledger } from '../ledger/ledger.ts'
import { howToGoOn } from '../net/outcome.ts'
import type { Stopped } from './asking.ts'
import { registryState } from './state.ts'

/** What scripts read of a registry run; names are relied on. */
export interface RegistrySummary {
  readonly run: string
  readonly version: number
  readonly requests: number
  /** What the snapshot of this run was put together from; null without one. */
  readonly source: 'snapshot' | 'lists' | null
  /** The date of the snapshot that was added; null when it added nothing. */
  readonly snapshot_date: string | null
  readonly events: number
  readonly pages: number
  /** Events of types that this program does not know, by type. */
  readonly unknown: Readonly<Record<string, number>>
  readonly opened: number
  readonly updated: number
  readonly closed: number
  readonly files_added: number
  readonly findings: number
  readonly schema_changes: number
  readonly epoch: number
  readonly new_epoch: boolean
  readonly records: Readonly<Record<string, number>>
  readonly stopped_by: string | null
  /** When a spent quota comes back, ISO text. */
  readonly resume_at: string | null
  readonly words: string | null
}

/** What has come of a run so far. */
export interface Tally {
  version: number
  source: 'snapshot' | 'lists' | null
  date: string | null
  events: number
  pages: number
  readonly unknown: Record<string, number>
  opened: number
  updated: number
  closed: number
  files: number
  findings: number
  schemaChanges: number
  newEpoch: boolean
}

/** Nothing has come of it yet. */
export function newTally(version: number): Tally {
  return {
    version,
    source: null,
    date: null,
    events: 0,
    pages: 0,
    unknown: Object.create(null) as Tally['unknown'],
    opened: 0,
    updated: 0,
    closed: 0,
    files: 0,
    findings: 0,
    schemaChanges: 0,
    newEpoch: false,
  }
}

interface Ended {
  readonly id: string
  readonly ledger: Ledger
  readonly tally: Tally
  readonly connection: Pick<Connection, 'sent'>
}

/** What has come of it in the end. */
export function summaryOf({ id, ledger, tally, connection }: Ended, stopped: Stopped | null): RegistrySummary {
  const { epoch, records } = registryState(ledger)
  return {
    run: id,
    version: tally.version,
    requests: connection.sent(),
    source: tally.source,
    snapshot_date: tally.date,
    events: tally.events,
    pages: tally.pages,
    unknown: tally.unknown,
    opened: tally.opened,
    updated: tally.updated,
    closed: tally.closed,
    files_added: tally.files,
    findings: tally.findings,
    schema_changes: tally.schemaChanges,
    epoch,
    new_epoch: tally.newEpoch,
    records,
    stopped_by: stopped?.by ?? null,
    resume_at: typeof stopped?.until === 'number' ? new Date(stopped.until).toISOString() : null,
    words: stopped?.words ?? null,
  }
}

/** The error that a registry run ends with after its work, with what to do next; null where all is done. */
export function verdictOf(summary: RegistrySummary): LakeError | null {
  const { stopped_by, words, resume_at } = summary
  const got = words ?? undefined
  switch (stopped_by) {
    case null:
      return null
    case 'unauthorised':
      return new LakeError('unauthorised', {
        subject: 'the registry refuses the key',
        got,
        next: 'check PITLAKE_REGISTRY_KEY',
      })
    case 'signal':
    case 'max_requests':
    case 'budget':
    case 'quota':
      return new LakeError('stopped', { subject: `stopped early (${stopped_by})`, next: howToGoOn(resume_at) })
    default:
      return new LakeError('incomplete', {
        subject: 'the registry was not read to the end',
        got,
        next: 'nothing half-read was applied; run the same command again',
      })
  }
}
