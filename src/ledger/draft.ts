import type { Disk } from '../store/disk.ts'
import { type Entry, type FileEntry, footerSchema, type Json, type Provider, type Violation } from './entry.ts'
import type { Micros } from '../time.ts'
import type { Holder } from '../store/lock.ts'

/** What committing needs from outside. */
export interface CommitDeps {
  readonly nowMicros: () => Micros
  readonly sleep: (milliseconds: number) => Promise<unknown>
  readonly random: () => number
  readonly holder: Omit<Holder, 'since'>
  /** Name and version of the program. */
  readonly program: string
  readonly disk?: Disk
}

/** What rewriting files needs of the world. */
export interface RewriteDeps extends CommitDeps {
  /** Aborted by an interrupt: what is finished is committed, the rest is left as it is. */
  readonly signal: AbortSignal
  /** Statements run on so many threads; all by default. */
  readonly threads?: number
}

/** What a commit will be called, known before its files are written. */
export interface Ticket {
  readonly lake: string
  readonly version: number
  /** The `observed_at` of everything that it brings. */
  readonly committed_at: Micros
}

/** What the footers of its files say. */
export function footerOf({ lake, version }: Pick<Ticket, 'lake' | 'version'>): Readonly<Record<string, string>> {
  return { pitlake_lake: lake, pitlake_version: String(version), pitlake_schema: footerSchema }
}

/** A file that waits in the spool, or (`temporary` null) one of the lake to be listed under another label. */
export interface StagedFile extends Omit<FileEntry, 'bytes' | 'sha256'> {
  /** Relative to the lake. */
  readonly temporary: string | null
}

/** A file of the lake listed once more, as something else: the same bytes. */
export function listedAs(
  { path, table, label, metric, interval, rows, min_t, max_t, digest, meta }: FileEntry,
  as: Partial<Pick<FileEntry, 'table' | 'label'>>,
): StagedFile {
  return { temporary: null, path, table, label, metric, interval, rows, min_t, max_t, digest, meta, ...as }
}

/** What is not said of files that hold no points. */
export const withoutPoints = { metric: null, interval: null, min_t: null, max_t: null, digest: null } as const

type Brought =
  | 'series'
  | 'progress'
  | 'forgotten'
  | 'regained'
  | 'uncovered'
  | 'coverage'
  | 'violations'
  | 'passed'
  | 'accepted'
  | 'findings'
  | 'value_types'
  | 'retyped'
  | 'requests'
  | 'verified'
  | 'stamps'
  | 'rules'
  | 'state'

/**
 * Everything that one commit brings; what is left out is empty. Of the series, which the other parts name, known ones are
 * left out of the entry.
 */
export interface Draft extends Partial<Omit<Pick<Entry, Brought>, 'violations'>> {
  /** Those that name an incident go together into the entry. */
  readonly violations?: readonly Violation[]
  readonly job: string
  readonly run: string
  readonly provider: Provider
  /** The provider's address changed and the user said so. */
  readonly providerMoved?: boolean
  readonly add?: readonly StagedFile[]
  readonly remove?: readonly string[]
  readonly drop?: readonly string[]
  /** Facts noted in passing (time of the last poll, ETags …): alone they make no version. */
  readonly passing?: { readonly [key: string]: Json }
  /** Further keys of the entry. */
  readonly further?: { readonly [key: string]: Json }
}

/** What came of it: `made` is false when there was nothing new, and then `version` is the one before. */
export interface Version {
  readonly made: boolean
  readonly version: number
  readonly committed_at: Micros
  readonly points_added: number
  readonly files_added: number
  readonly violations_added: number
}
