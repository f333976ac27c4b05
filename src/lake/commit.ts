import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { dirname } from 'node:path'
import { LakeError } from '../errors.ts'
import { liveCoverage, seriesNumber } from './apply.ts'
import { alreadySaid } from './coverage.ts'
import { type Disk, diskError, exists, makeFolder, realDisk, statOf } from './disk.ts'
import type {
  CoverageRow,
  Entry,
  FileEntry,
  Finding,
  Json,
  Micros,
  Progress,
  Provider,
  RequestRow,
  Rules,
  SeriesRow,
  Stamp,
  Verified,
  Violation,
} from './entry.ts'
import { canonical, journalSchema } from './entry.ts'
import { heldRules, heldState } from './held.ts'
import { appendEntry } from './journal.ts'
import { entryFile, inLake } from './layout.ts'
import type { Head, Ledger } from './ledger.ts'
import { type Holder, lockCommit } from './lock.ts'
import { agreeProvider } from './provider.ts'
import { appendRunLines, type RunFacts, type RunLine } from './runlog.ts'

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

/** What a commit will be called, known before its files are written. */
export interface Ticket {
  readonly lake: string
  readonly version: number
  /** The `observed_at` of everything that it brings. */
  readonly committed_at: Micros
}

/** A file that waits in the spool, or (`temporary` null) one of the lake to be listed under another label. */
export interface StagedFile extends Omit<FileEntry, 'bytes' | 'sha256'> {
  /** Relative to the lake. */
  readonly temporary: string | null
}

/** Everything that one commit brings; what is left out is empty. */
export interface Draft {
  readonly job: string
  readonly run: string
  readonly provider: Provider
  /** The provider's address changed and the user said so. */
  readonly providerMoved?: boolean
  readonly add?: readonly StagedFile[]
  readonly remove?: readonly string[]
  readonly drop?: readonly string[]
  /** The series that the other parts name; known ones are left out of the entry. */
  readonly series?: readonly SeriesRow[]
  readonly progress?: readonly Progress[]
  readonly coverage?: readonly CoverageRow[]
  readonly violations?: readonly Violation[]
  readonly findings?: readonly Finding[]
  readonly requests?: readonly RequestRow[]
  readonly verified?: readonly Verified[]
  readonly stamps?: readonly Stamp[]
  readonly rules?: Rules | null
  readonly state?: { readonly [key: string]: Json }
  /** Facts that alone make no version. */
  readonly soft?: { readonly [key: string]: Json }
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
  readonly files_removed: number
  readonly violations_added: number
}

/**
 * Makes one version of everything in the draft, or none of it. Data files are forced to the disk and moved into
 * place first; the journal entry's appearing is the commit. The draft may be a function of the ticket, which runs
 * under the commit lock, for files that carry their version. Null drafts and drafts without news make no version.
 */
export async function commit(
  ledger: Ledger,
  draft: Draft | ((ticket: Ticket) => Promise<Draft | null>),
  deps: CommitDeps,
): Promise<Version> {
  const disk = deps.disk ?? realDisk
  const lock = await lockCommit(ledger.root, { ...deps.holder, since: deps.nowMicros() }, deps)
  try {
    const head = await ledger.catchUp()
    const ticket = issueTicket(head, deps)
    const whole = typeof draft === 'function' ? await draft(ticket) : draft
    if (!whole) return nothingNew(head)
    const entry = newsOf(ledger, head, ticket, whole, deps.program)
    if (!isNews(entry, head, whole)) return await noteRun(ledger, disk, head, ticket, whole)
    return await publish(ledger, disk, entry, whole)
  } catch (error) {
    throw diskError(error, 'commit')
  } finally {
    await lock.release()
  }
}

function issueTicket(head: Head, deps: CommitDeps): Ticket {
  const lake = head.lake ?? Array.from({ length: 32 }, () => Math.floor(deps.random() * 16).toString(16)).join('')
  const committed_at = Math.max(Math.floor(deps.nowMicros()), head.committed_at + 1)
  return { lake, version: head.version + 1, committed_at }
}

function nothingNew(head: Head): Version {
  const none = { points_added: 0, files_added: 0, files_removed: 0, violations_added: 0 }
  return { made: false, version: head.version, committed_at: head.committed_at, ...none }
}

/** The entry of what the lake does not know yet. Files are listed without bytes and checksum until they are read. */
function newsOf(ledger: Ledger, head: Head, ticket: Ticket, draft: Draft, program: string): Entry {
  checkFiles(ledger, draft)
  const rules = draft.rules && draft.rules.digest !== heldRules(ledger)?.digest ? draft.rules : null
  const state = Object.entries(draft.state ?? {}).filter(
    ([key, value]) => canonical(heldState(ledger, key)) !== canonical(value),
  )
  return {
    ...draft.further,
    schema_version: journalSchema,
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
    progress: (draft.progress ?? []).filter((step) => step.points !== 0),
    coverage: newCoverage(ledger, draft.coverage ?? []),
    violations: newViolations(ledger, draft.violations ?? []),
    findings: newFindings(ledger, draft.findings ?? []),
    requests: draft.requests ?? [],
    verified: draft.verified ?? [],
    stamps: draft.stamps ?? [],
    rules,
    state: Object.fromEntries(state),
  }
}

/** Series alone, requests and verified windows are no news: they make no version. */
function isNews(entry: Entry, head: Head, draft: Draft): boolean {
  const lists = [entry.files.remove, entry.files.drop, entry.progress, entry.coverage, entry.violations]
  const more = [entry.findings, entry.stamps, draft.add ?? [], Object.keys(entry.state)]
  if ([...lists, ...more].some((list) => list.length > 0) || entry.rules !== null) return true
  return head.provider !== null && canonical(head.provider) !== canonical(entry.provider)
}

/** A path names the same bytes for ever: new files take new names, and only files that left the view are dropped. */
function checkFiles(ledger: Ledger, draft: Draft): void {
  const named = ledger.statement('SELECT 1 FROM files WHERE path = ?')
  const labelled = ledger.statement('SELECT 1 FROM files WHERE path = ? AND label = ?')
  const kept = ledger.statement('SELECT 1 FROM files WHERE path = ? AND dropped_version IS NULL')
  const live = ledger.statement('SELECT 1 FROM files WHERE path = ? AND removed_version IS NULL')
  const fresh = new Set((draft.add ?? []).filter((file) => file.temporary !== null).map((file) => file.path))
  for (const { path, label, temporary } of draft.add ?? []) {
    const taken = temporary === null ? labelled.get(path, label) : named.get(path)
    if (taken) throw conflict(path, 'a new file name', 'one that is listed already')
    if (temporary === null && !fresh.has(path) && !kept.get(path))
      throw conflict(path, 'a file of the lake', 'one that is not listed')
  }
  for (const path of draft.remove ?? [])
    if (!live.get(path)) throw conflict(path, 'a file of the newest version', 'one that has left it')
  for (const path of draft.drop ?? [])
    if (live.get(path) && !draft.remove?.includes(path)) throw conflict(path, 'a superseded file', 'a live one')
}

function conflict(path: string, expected: string, got: string): LakeError {
  const next = 'another job changed the lake meanwhile: run the same command again'
  return new LakeError('unexpected', { subject: `file ${path}`, expected, got, next })
}

function newSeries(ledger: Ledger, series: readonly SeriesRow[]): SeriesRow[] {
  const settled = ledger.statement('SELECT settled FROM series WHERE id = ?')
  const fresh = new Map<string, SeriesRow>()
  for (const row of series) {
    const known = settled.get(row.id)
    if (!known || (known['settled'] === null && row.settled !== null)) fresh.set(row.id, row)
  }
  return [...fresh.values()]
}

function newCoverage(ledger: Ledger, rows: readonly CoverageRow[]): CoverageRow[] {
  const overtaken = new Set<string>()
  return rows.filter((row) => {
    const n = seriesNumber(ledger, row.series)
    const known = n !== undefined && !overtaken.has(row.series) && alreadySaid(liveCoverage(ledger, n, row), row)
    if (!known) overtaken.add(row.series)
    return !known
  })
}

function newViolations(ledger: Ledger, rows: readonly Violation[]): Violation[] {
  const known = ledger.statement('SELECT 1 FROM violations WHERE series = ? AND t = ? AND kind = ? AND offered_key = ?')
  return unique(rows, (v) => canonical([v.series, v.t, v.kind, v.offered ?? ''])).filter((v) => {
    const n = seriesNumber(ledger, v.series)
    return n === undefined || !known.get(n, v.t, v.kind, v.offered ?? '')
  })
}

function newFindings(ledger: Ledger, rows: readonly Finding[]): Finding[] {
  const known = ledger.statement('SELECT 1 FROM clock_findings WHERE series = ? AND t = ? AND kind = ?')
  return unique(rows, (f) => canonical([f.series, f.t, f.kind])).filter((f) => {
    const n = seriesNumber(ledger, f.series)
    return n === undefined || !known.get(n, f.t, f.kind)
  })
}

function unique<T>(rows: readonly T[], key: (row: T) => string): T[] {
  const first = new Map<string, T>()
  for (const row of rows) if (!first.has(key(row))) first.set(key(row), row)
  return [...first.values()]
}

/** Moves the files in, writes the entry, lets the index follow. What fails before the entry leaves no file behind. */
async function publish(ledger: Ledger, disk: Disk, news: Entry, draft: Draft): Promise<Version> {
  const moved: string[] = []
  try {
    const add: FileEntry[] = []
    for (const file of draft.add ?? []) add.push(await place(ledger.root, disk, file, moved))
    for (const folder of new Set(moved.map((path) => dirname(inLake(ledger.root, path))))) await disk.syncFolder(folder)
    const entry: Entry = { ...news, files: { ...news.files, add } }
    const digest = await appendEntry(disk, ledger.root, entry, draft.run.replaceAll(/[^\w-]/g, '_'))
    if (digest === false) throw conflict(entryFile(entry.version), 'the next free version', 'one that is taken')
    await noteLines(ledger, disk, entry, draft, new Set(entry.coverage))
    await ledger.catchUp()
    return resultOf(entry)
  } catch (error) {
    await takeBack(ledger.root, disk, news.version, moved)
    throw error
  }
}

/** Forces a staged file to the disk, reads its checksum and moves it into place. */
async function place(root: string, disk: Disk, staged: StagedFile, moved: string[]): Promise<FileEntry> {
  const { temporary, ...file } = staged
  const target = inLake(root, file.path)
  const source = temporary === null ? target : inLake(root, temporary)
  const bytes = (await statOf(source))?.size
  if (bytes === undefined)
    throw new LakeError('unexpected', { subject: `staged file ${temporary ?? file.path}`, got: 'no such file' })
  const sha256 = await sha256File(source)
  if (temporary !== null) {
    await disk.sync(source)
    await makeFolder(disk, dirname(target))
    await disk.move(source, target)
    moved.push(file.path)
  }
  return { ...file, bytes, sha256 }
}

/** SHA-256 of a file's bytes, hex. */
export async function sha256File(path: string): Promise<string> {
  const hash = createHash('sha256')
  for await (const chunk of createReadStream(path, { highWaterMark: 1 << 20 })) hash.update(chunk as Buffer)
  return hash.digest('hex')
}

/** Once the entry is visible its files are the lake's, whatever failed afterwards. */
async function takeBack(root: string, disk: Disk, version: number, moved: readonly string[]): Promise<void> {
  if (moved.length === 0 || (await exists(inLake(root, entryFile(version))).catch(() => true))) return
  for (const path of moved) await disk.remove(inLake(root, path)).catch(() => undefined)
}

function resultOf(entry: Entry): Version {
  let points = 0
  for (const step of entry.progress) points += step.points
  return {
    made: true,
    version: entry.version,
    committed_at: entry.committed_at,
    points_added: points,
    files_added: entry.files.add.length,
    files_removed: entry.files.remove.length,
    violations_added: entry.violations.length,
  }
}

/** Without news only the run's own file grows. */
async function noteRun(ledger: Ledger, disk: Disk, head: Head, ticket: Ticket, draft: Draft): Promise<Version> {
  await noteLines(ledger, disk, { version: head.version, committed_at: ticket.committed_at }, draft, undefined)
  await ledger.catchUp()
  return nothingNew(head)
}

/** What of a draft goes to the run's file: beside a version (`told`: its coverage) only what the entry does not tell. */
async function noteLines(
  ledger: Ledger,
  disk: Disk,
  at: { readonly version: number; readonly committed_at: Micros },
  draft: Draft,
  told: ReadonlySet<CoverageRow> | undefined,
): Promise<void> {
  const soft = Object.entries(draft.soft ?? {}).map(([key, value]) => [key, { at: at.committed_at, value }] as const)
  const due = (row: CoverageRow): boolean => row.state !== 'covered' || row.reason !== null
  const again = (draft.coverage ?? []).filter((row) => due(row) && !told?.has(row))
  const { requests = [], verified = [] } = told ? {} : draft
  const line: RunLine = {
    after: at.version,
    ...(soft.length > 0 && { soft: Object.fromEntries(soft) }),
    ...(again.length > 0 && { asked_again: again }),
    ...(requests.length > 0 && { requests }),
    ...(verified.length > 0 && { verified }),
  }
  if (Object.keys(line).length > 1) await appendRunLines(disk, ledger.root, draft.run, [line])
}

/** Writes down facts of a run: its beginning, its plan, its end. Makes no version. */
export async function noteRunFacts(ledger: Ledger, run: RunFacts, disk: Disk = realDisk): Promise<void> {
  try {
    await appendRunLines(disk, ledger.root, run.id, [{ after: ledger.head().version, run }])
    await ledger.catchUp()
  } catch (error) {
    throw diskError(error, 'writing the run down')
  }
}
