import { LakeError } from '../errors.ts'
import { howToGoOn } from '../net/outcome.ts'

/** What has come of a run so far; names are relied on. */
export interface Tally {
  version: number
  /** What the snapshot of this run was put together from; null without one. */
  source: 'snapshot' | 'lists' | null
  /** The date of the snapshot that was added; null when it added nothing. */
  snapshot_date: string | null
  events: number
  pages: number
  /** Events of types that this program does not know, by type. */
  readonly unknown: Record<string, number>
  opened: number
  updated: number
  closed: number
  files_added: number
  findings: number
  schema_changes: number
  new_epoch: boolean
}

/** Nothing has come of it yet. */
export function newTally(version: number): Tally {
  const unknown = Object.create(null) as Tally['unknown']
  const counts = {
    events: 0,
    pages: 0,
    opened: 0,
    updated: 0,
    closed: 0,
    files_added: 0,
    findings: 0,
    schema_changes: 0,
  }
  return { version, source: null, snapshot_date: null, unknown, ...counts, new_epoch: false }
}

/** What scripts read of a registry run; names are relied on. */
export interface RegistrySummary extends Readonly<Tally> {
  readonly run: string
  readonly requests: number
  readonly epoch: number
  readonly records: Readonly<Record<string, number>>
  readonly stopped_by: string | null
  /** When a spent quota comes back, ISO text. */
  readonly resume_at: string | null
  readonly words: string | null
}

/** The error that a registry run ends with after its work, with what to do next; null where all is done. */
export function verdictOf(summary: Pick<RegistrySummary, 'stopped_by' | 'words' | 'resume_at'>): LakeError | null {
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
