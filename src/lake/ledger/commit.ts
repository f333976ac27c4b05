import { type CoverageRow, encodeEntry, type Entry, type FileEntry, type Json } from './entry.ts'
import { createHash } from 'node:crypto'
import { dirname } from 'node:path'
import { eachChunk, linkAbove } from '../store/files.ts'
import { LakeError } from '../../base/errors.ts'
import { codeOf, type Disk, diskError, exists, isReadable, realDisk, statOf } from '../store/disk.ts'
import {
  type CommitDeps,
  conflict,
  type Draft,
  needsVersion,
  newsOf,
  type StagedFile,
  type Ticket,
  type Version,
} from './draft.ts'
import { unwatched } from '../../base/stopwatch.ts'
import type { Micros } from '../../base/time.ts'
import { appendEntry, asideDigest } from './journal.ts'
import { entryFile, inLake } from '../store/layout.ts'
import type { Head, Ledger } from './ledger.ts'
import { lockCommit } from '../store/lock.ts'
import { readMarker, refuseMirror, setMarker } from '../store/marker.ts'
import { pointsOf, within } from './apply.ts'
import { makeLakeFolder } from '../store/private-folders.ts'
import { appendFacts, type FactLine, type RunFacts } from './run-facts.ts'

export type { CommitDeps, Draft, RewriteDeps, StagedFile, Ticket, Version } from './draft.ts'

/**
 * Makes one version of everything in the draft, or none of it. Data files are first forced to the disk and moved into
 * place; the commit takes effect when the journal entry appears. The draft may be a function of the ticket, which runs
 * under the commit lock, for files that contain their version. Null drafts and drafts without news make no version.
 * `instant` replaces the time of the commit and may precede the last version, to correct what a wrong clock has dated.
 */
export async function commit(
  ledger: Ledger,
  draft: Draft | ((ticket: Ticket) => Promise<Draft | null>),
  deps: CommitDeps,
  instant?: Micros,
): Promise<Version> {
  const disk = deps.disk ?? realDisk
  await refuseMirror(ledger.root)
  await using _lock = await lockCommit(ledger.root, { ...deps.holder, since: deps.nowMicros() }, deps)
  try {
    const head = await ledger.catchUp()
    const issued = await issueTicket(ledger.root, head, deps)
    const ticket = instant === undefined ? issued : { ...issued, committed_at: instant }
    const wholeDraft = typeof draft === 'function' ? await draft(ticket) : draft
    if (!wholeDraft) return nothingNew(head)
    const entry = newsOf(ledger, head, ticket, wholeDraft, deps.program)
    if (!needsVersion(entry, head, wholeDraft)) return await noteRun(ledger, disk, head, ticket, wholeDraft)
    return await (deps.during ?? unwatched)('committing', () => publish(ledger, disk, entry, wholeDraft))
  } catch (error) {
    throw diskError(error, 'commit')
  }
}

/**
 * Issues the ticket of the next version. The lake's id is that of the journal; before the first entry it is that of the
 * marker, which a killed first commit may have left.
 */
async function issueTicket(root: string, head: Head, deps: CommitDeps): Promise<Ticket> {
  const fresh = (): string => Array.from({ length: 32 }, () => Math.floor(deps.random() * 16).toString(16)).join('')
  const lake = head.lake ?? (await readMarker(root)) ?? fresh()
  const committed_at = Math.max(storableInstant(Math.floor(deps.nowMicros())), head.committed_at + 1)
  return { lake, version: head.version + 1, committed_at }
}

/** Returns the timestamp if a lake can store it; a clock beyond the year 2255 is an error. */
function storableInstant(at: Micros): Micros {
  if (within(at) === at) return at
  throw new LakeError('incomplete', {
    subject: 'the clock of this machine',
    expected: `an instant before ${isoOf(Number.MAX_SAFE_INTEGER)}`,
    got: isoOf(at),
    next: 'set it right, then run the same command again',
  })
}

function isoOf(at: Micros): string {
  const date = new Date(at / 1000)
  return Number.isNaN(date.getTime()) ? `${at} microseconds` : date.toISOString()
}

function nothingNew(head: Head): Version {
  const none = { points_added: 0, vintages_added: 0, files_added: 0, violations_added: 0 }
  return { made: false, version: head.version, committed_at: head.committed_at, ...none }
}

/**
 * Moves the files into place, writes the entry and updates the index. An entry that cannot be read back, or that the
 * index refuses, never becomes visible. A failure before the entry leaves no file behind.
 */
async function publish(ledger: Ledger, disk: Disk, news: Entry, draft: Draft): Promise<Version> {
  const moved: string[] = []
  try {
    await setMarker(disk, ledger.root, news.lake, news.provider.synthetic)
    const add: FileEntry[] = []
    for (const file of draft.add ?? []) add.push(await place(ledger.root, disk, file, moved))
    for (const folder of new Set(moved.map((path) => dirname(inLake(ledger.root, path))))) await disk.syncFolder(folder)
    const replaced = await asideDigest(ledger.root, news.version)
    const entry: Entry = { ...news, files: { ...news.files, add }, ...(replaced !== null && { replaces: replaced }) }
    const { text } = encodeEntry(entry)
    const rehearsed = ledger.rehearse(text, entryFile(entry.version))
    const digest = await appendEntry(disk, ledger.root, entry, draft.run.replaceAll(/[^\w-]/g, '_'), {
      text,
      digest: rehearsed.digest,
    })
    if (digest === false) throw conflict(entryFile(entry.version), 'the next free version', 'one that is taken')
    await noteLines(ledger, disk, entry, draft, new Set(entry.coverage))
    await ledger.catchUp(entry.version, rehearsed)
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
    throw new LakeError('unexpected', {
      subject: `staged file ${temporary ?? file.path}`,
      got: 'no such file',
      next: 'run the same command again',
    })
  const sha256 = await sha256File(source)
  if (temporary !== null) {
    await disk.sync(source)
    await makeLakeFolder(disk, root, dirname(file.path))
    await disk.move(source, target)
    moved.push(file.path)
  }
  return { ...file, bytes, sha256 }
}

/** Computes the SHA-256 of a file's bytes, hex. */
export async function sha256File(path: string): Promise<string> {
  const hash = createHash('sha256')
  await eachChunk(path, (chunk) => {
    hash.update(chunk)
    return true
  })
  return hash.digest('hex')
}

/**
 * The defect of a file that differs from its commit: in its bytes, or (`file_linked`, `file_denied`) in the way to
 * them, at `path`.
 */
export interface BytesProblem {
  readonly kind: 'file_lost' | 'file_torn' | 'file_changed' | 'file_linked' | 'file_denied'
  readonly path: string
  readonly found: string
}

/** Finds the defect in the bytes of a file, all of which are read if `thorough`; undefined if they are as committed. */
export async function bytesProblem(
  root: string,
  { path, bytes, sha256 }: Pick<FileEntry, 'path' | 'bytes' | 'sha256'>,
  thorough = true,
): Promise<BytesProblem | undefined> {
  const full = inLake(root, path)
  const link = linkAbove(root, path)
  if (link !== undefined) return { kind: 'file_linked', path: link, found: 'a link that leads out of the lake' }
  try {
    const size = (await statOf(full))?.size
    if (size === undefined) return { kind: 'file_lost', path, found: 'it is not there' }
    if (size !== bytes) return { kind: 'file_torn', path, found: `${size} bytes, expected ${bytes}` }
    if (!thorough || (await sha256File(full)) === sha256) return undefined
    return { kind: 'file_changed', path, found: 'its bytes do not match their checksum on record' }
  } catch (error) {
    if (codeOf(error) !== 'EACCES') throw error
    return { kind: 'file_denied', path: deniedAt(root, path), found: 'permission denied' }
  }
}

/** Returns the first part of a file's path to which this user has no access; the path itself if there is none. */
function deniedAt(root: string, path: string): string {
  const parts = path.split('/')
  const above = parts.map((_, n) => parts.slice(0, n + 1).join('/'))
  return above.find((part) => !isReadable(inLake(root, part))) ?? path
}

/** Removes moved files after a failure, unless the entry is visible: its files then belong to the lake. */
async function takeBack(root: string, disk: Disk, version: number, moved: readonly string[]): Promise<void> {
  if (moved.length === 0 || (await exists(inLake(root, entryFile(version))).catch(() => true))) return
  for (const path of moved) await disk.remove(inLake(root, path)).catch(() => undefined)
}

function resultOf(entry: Entry): Version {
  return {
    made: true,
    version: entry.version,
    committed_at: entry.committed_at,
    points_added: pointsOf(entry),
    vintages_added: entry.progress.reduce((sum, { vintages = 0 }) => sum + vintages, 0),
    files_added: entry.files.add.length,
    violations_added: entry.violations.length,
  }
}

/** Records a draft without news: only the run's own file grows. */
async function noteRun(ledger: Ledger, disk: Disk, head: Head, ticket: Ticket, draft: Draft): Promise<Version> {
  await noteLines(ledger, disk, { version: head.version, committed_at: ticket.committed_at }, draft, undefined)
  await ledger.catchUp()
  return nothingNew(head)
}

/**
 * Writes the facts of a draft that belong in the run's file; if the commit made a version (`inEntry`: its coverage),
 * only those that the entry does not contain.
 */
async function noteLines(
  ledger: Ledger,
  disk: Disk,
  at: { readonly version: number; readonly committed_at: Micros },
  draft: Draft,
  inEntry: ReadonlySet<CoverageRow> | undefined,
): Promise<void> {
  const passing = Object.entries(draft.passing ?? {}).map(
    ([key, value]) => [key, { at: at.committed_at, value }] as const,
  )
  const due = (row: CoverageRow): boolean => row.state !== 'covered' || row.reason !== null
  const again = (draft.coverage ?? []).filter((row) => due(row) && row.state !== 'not requested' && !inEntry?.has(row))
  const { requests = [], verified = [] } = inEntry ? {} : draft
  const line: FactLine = {
    after: at.version,
    ...(passing.length > 0 && { soft: Object.fromEntries(passing) }),
    ...(again.length > 0 && { asked_again: again }),
    ...(requests.length > 0 && { requests }),
    ...(verified.length > 0 && { verified }),
  }
  if (Object.keys(line).length > 1) await appendFacts(disk, ledger.root, draft.run, [line])
}

/** Records a fact in passing, outside of a commit, and makes no version. */
export async function notePassing(
  ledger: Ledger,
  run: string,
  key: string,
  fact: { readonly at: Micros; readonly value: Json },
  disk: Disk = realDisk,
): Promise<void> {
  try {
    await appendFacts(disk, ledger.root, run, [{ after: ledger.head().version, soft: { [key]: fact } }])
    await ledger.catchUp()
  } catch (error) {
    throw diskError(error, `writing ${key} down`)
  }
}

/** Records facts of a run (its beginning, its plan, its end) and makes no version. */
export async function noteRunFacts(ledger: Ledger, run: RunFacts, disk: Disk = realDisk): Promise<void> {
  if (run.started_at !== undefined) storableInstant(run.started_at)
  try {
    await appendFacts(disk, ledger.root, run.id, [{ after: ledger.head().version, run }])
    await ledger.catchUp()
  } catch (error) {
    throw diskError(error, 'writing the run down')
  }
}
