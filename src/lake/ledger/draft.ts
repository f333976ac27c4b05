import type { Disk } from '../store/disk.ts'
import {
  canonical,
  type CoverageRow,
  type Entry,
  type EntryParts,
  type FileEntry,
  type Finding,
  layoutNumber,
  type Json,
  type Provider,
  type SeriesRow,
  type Violation,
} from './entry.ts'
import type { During } from '../../base/stopwatch.ts'
import type { Micros } from '../../base/time.ts'
import type { Holder } from '../store/lock.ts'
import { LakeError } from '../../base/errors.ts'
import { liveCoverage, seriesNumber } from './apply.ts'
import { alreadySaid } from './coverage.ts'
import { isStanding, keyOf, packViolations } from './differences.ts'
import { storedRules, storedState } from './index-queries.ts'
import type { Head, Ledger } from './ledger.ts'
import { agreeProvider } from './provider.ts'

/** The dependencies of a commit. */
export interface CommitDeps {
  readonly nowMicros: () => Micros
  readonly sleep: (milliseconds: number) => Promise<unknown>
  readonly random: () => number
  /** The name of this process for others that find one of its locks taken. */
  readonly holder: Omit<Holder, 'since'>
  /** Name and version of the program. */
  readonly program: string
  readonly disk?: Disk
  /** Measures the time of each part of a run. */
  readonly during?: During
}

/** The dependencies of a job that rewrites files. */
export interface RewriteDeps extends CommitDeps {
  /** Signal of an interrupt: finished work is committed, the rest is left unchanged. */
  readonly signal: AbortSignal
  /** Number of threads for statements; all by default. */
  readonly threads?: number
}

/** The identity of a commit, known before its files are written. */
export interface Ticket {
  readonly lake: string
  readonly version: number
  /** The `observed_at` of everything that the commit adds. */
  readonly committed_at: Micros
}

/** The piece of state that names the metrics whose points may have several vintages. */
export const revisableKey = 'revisable'

/** Returns the metadata in the footers of a commit's files. */
export function footerOf({ lake, version }: Pick<Ticket, 'lake' | 'version'>): Readonly<Record<string, string>> {
  return { pitlake_lake: lake, pitlake_version: String(version), pitlake_schema: String(layoutNumber) }
}

/** A file that waits in the spool or, with `temporary` null, a file of the lake to list under another label. */
export interface StagedFile extends Omit<FileEntry, 'bytes' | 'sha256'> {
  /** Path of the waiting file, relative to the lake. */
  readonly temporary: string | null
}

/** Lists a file of the lake once more under another table or label, with the same bytes. */
export function listedAs(
  { path, table, label, metric, interval, rows, min_t, max_t, digest, meta }: FileEntry,
  as: Partial<Pick<FileEntry, 'table' | 'label'>>,
): StagedFile {
  return { temporary: null, path, table, label, metric, interval, rows, min_t, max_t, digest, meta, ...as }
}

/** Nulls for the fields that only files of points have. */
export const withoutPoints = { metric: null, interval: null, min_t: null, max_t: null, digest: null } as const

/** Fields of an entry that the commit itself writes. */
type Framed = 'schema_version' | 'lake' | 'version' | 'previous' | 'replaces' | 'committed_at' | 'program' | 'files'

/**
 * The contents of one commit; parts that are left out are empty. `series` may contain known series that other parts
 * name; the entry leaves them out.
 */
export interface Draft extends Partial<Omit<EntryParts, Framed | 'run' | 'violations' | 'incidents'>> {
  /** Violations; the entry combines those of one incident. */
  readonly violations?: readonly Violation[]
  readonly job: string
  readonly run: string
  readonly provider: Provider
  /** Whether the provider's address changed and the user confirmed it. */
  readonly providerMoved?: boolean
  readonly add?: readonly StagedFile[]
  readonly remove?: readonly string[]
  readonly drop?: readonly string[]
  /** Facts noted in passing (time of the last poll, ETags …): alone they make no version. */
  readonly passing?: { readonly [key: string]: Json }
  /** Further keys of the entry. */
  readonly further?: { readonly [key: string]: Json }
}

/** The result of a commit: `made` is false if there was nothing new, and `version` is then the previous one. */
export interface Version {
  readonly made: boolean
  readonly version: number
  readonly committed_at: Micros
  readonly points_added: number
  /** Number of `points_added` that are further vintages of points that had a value. */
  readonly vintages_added: number
  readonly files_added: number
  readonly violations_added: number
}

/** Builds the entry of the news in a draft. Files are listed without bytes and checksum until they are read. */
export function newsOf(ledger: Ledger, head: Head, ticket: Ticket, draft: Draft, program: string): Entry {
  checkFiles(ledger, draft)
  const rules = draft.rules && draft.rules.digest !== storedRules(ledger)?.digest ? draft.rules : null
  const state = Object.entries(draft.state ?? {}).filter(
    ([key, value]) => canonical(storedState(ledger, key)) !== canonical(value),
  )
  return {
    ...draft.further,
    schema_version: layoutNumber,
    lake: ticket.lake,
    version: ticket.version,
    previous: head.digest,
    committed_at: ticket.committed_at,
    program,
    job: draft.job,
    run: draft.run,
    provider: agreeProvider(head.provider, draft.provider, draft.providerMoved ?? false),
    files: { add: [], remove: draft.remove ?? [], drop: draft.drop ?? [] },
    series: newSeries(ledger, draft.series ?? []),
    progress: (draft.progress ?? []).filter((step) => step.points !== 0 || step.digests !== undefined),
    ...filled(draft, ['forgotten', 'regained', 'uncovered', 'passed', 'accepted', 'value_types', 'retyped']),
    coverage: draft.uncovered === undefined ? newCoverage(ledger, draft.coverage ?? []) : (draft.coverage ?? []),
    ...packViolations(newViolations(ledger, draft.violations ?? [])),
    findings: newFindings(ledger, draft.findings ?? []),
    requests: draft.requests ?? [],
    verified: draft.verified ?? [],
    rules,
    state: Object.fromEntries(state),
  }
}

/** Picks the lists of a draft that are not empty: an entry leaves the others out. */
function filled<K extends keyof Draft>(draft: Draft, names: readonly K[]): Pick<Draft, K> {
  return Object.fromEntries(names.flatMap((name) => (isFilled(draft[name]) ? [[name, draft[name]]] : []))) as Pick<
    Draft,
    K
  >
}

const isFilled = (part: unknown): boolean => Array.isArray(part) && part.length > 0

/** Whether an entry needs a version of its own. Series alone, requests and verified windows do not. */
export function needsVersion(entry: Entry, head: Head, draft: Draft): boolean {
  const { files, progress, coverage, violations, incidents, passed, accepted, findings, rules, state } = entry
  const lists = [files.remove, files.drop, progress, coverage, violations, incidents, passed, accepted, findings]
  if ([...lists, draft.add, Object.keys(state)].some(isFilled) || rules !== null) return true
  return head.provider !== null && canonical(head.provider) !== canonical(entry.provider)
}

/**
 * Checks that a path never stands for other bytes: new files take new names, and only files that left the view are
 * dropped.
 */
function checkFiles(ledger: Ledger, draft: Draft): void {
  const named = ledger.statement('SELECT 1 FROM files WHERE path = ?')
  const labelled = ledger.statement('SELECT 1 FROM files WHERE path = ? AND label = ?')
  const keptPath = ledger.statement('SELECT 1 FROM files WHERE path = ? AND dropped_version IS NULL')
  const live = ledger.statement('SELECT 1 FROM files WHERE path = ? AND removed_version IS NULL')
  const fresh = new Set((draft.add ?? []).filter((file) => file.temporary !== null).map((file) => file.path))
  for (const { path, label, temporary } of draft.add ?? []) {
    const listedFile = temporary === null ? labelled.get(path, label) : named.get(path)
    if (listedFile) throw conflict(path, 'a new file name', 'one that is listed already')
    if (temporary === null && !fresh.has(path) && !keptPath.get(path))
      throw conflict(path, 'a file of the lake', 'one that is not listed')
  }
  for (const path of draft.remove ?? [])
    if (!live.get(path)) throw conflict(path, 'a file of the newest version', 'one that has left it')
  for (const path of draft.drop ?? [])
    if (live.get(path) && !draft.remove?.includes(path)) throw conflict(path, 'a superseded file', 'a live one')
}

/** Builds the error of a commit that another job has overtaken. */
export function conflict(path: string, expected: string, got: string): LakeError {
  const next = 'another job changed the lake meanwhile: run the same command again'
  return new LakeError('unexpected', { subject: `file ${path}`, expected, got, next })
}

function newSeries(ledger: Ledger, series: readonly SeriesRow[]): SeriesRow[] {
  const settledInterval = ledger.statement('SELECT settled FROM series WHERE id = ?')
  const fresh = new Map<string, SeriesRow>()
  for (const row of series) {
    const storedRow = settledInterval.get(row.id)
    if (!storedRow || (storedRow['settled'] === null && row.settled !== null)) fresh.set(row.id, row)
  }
  return [...fresh.values()]
}

function newCoverage(ledger: Ledger, rows: readonly CoverageRow[]): CoverageRow[] {
  const overtaken = new Set<string>()
  return rows.filter((row) => {
    const n = seriesNumber(ledger, row.series)
    const isRecorded = n !== undefined && !overtaken.has(row.series) && alreadySaid(liveCoverage(ledger, n, row), row)
    if (!isRecorded) overtaken.add(row.series)
    return !isRecorded
  })
}

/** Returns the violations that are not on record, or that were reverted upstream since. */
function newViolations(ledger: Ledger, rows: readonly Violation[]): Violation[] {
  return unique(rows, (v) => canonical(keyOf(v))).filter((v) => {
    const n = seriesNumber(ledger, v.series)
    return n === undefined || !isStanding(ledger, n, v)
  })
}

function newFindings(ledger: Ledger, rows: readonly Finding[]): Finding[] {
  const recordedFinding = ledger.statement('SELECT 1 FROM clock_findings WHERE series = ? AND t = ? AND kind = ?')
  return unique(rows, (f) => canonical([f.series, f.t, f.kind])).filter((f) => {
    const n = seriesNumber(ledger, f.series)
    return n === undefined || !recordedFinding.get(n, f.t, f.kind)
  })
}

function unique<T>(rows: readonly T[], key: (row: T) => string): T[] {
  const first = new Map<string, T>()
  for (const row of rows) if (!first.has(key(row))) first.set(key(row), row)
  return [...first.values()]
}
