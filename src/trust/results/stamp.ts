import { requireFileError } from '../../lake/store/file-errors.ts'
import { basename, dirname } from 'node:path'
import { copy, isThere, readEnds, readText } from '../../lake/store/files.ts'
import { exportCatalogue } from '../../catalog/export.ts'
import type { Catalogue } from '../../catalog/catalogue.ts'
import { LakeError, usage } from '../../base/errors.ts'
import { type CommitDeps, sha256File } from '../../lake/ledger/commit.ts'
import { sha256 } from '../../lake/ledger/entry.ts'
import { diskError, exists, makeFolder, realDisk, statOf } from '../../lake/store/disk.ts'
import { type StoredFile, storedRules, storedStamps, liveFiles } from '../../lake/ledger/index-queries.ts'
import { inLake, places } from '../../lake/store/layout.ts'
import { Ledger } from '../../lake/ledger/ledger.ts'
import { observedAgain } from '../../lake/ledger/lost-points.ts'
import { lockCommit, pin } from '../../lake/store/lock.ts'
import { refuseMirror } from '../../lake/store/marker.ts'
import { readStamp, type StampFile, stampSchema, writeStamp } from '../../lake/ledger/stamps.ts'
import { openSpool, type Spool } from '../../lake/ledger/spool-sweep.ts'
import { tellViews } from '../../query/views/build.ts'
import { exportsOf } from '../../query/views/manifest.ts'
import { type AssumedRows, loadAssumptions } from '../lookahead/assumptions.ts'
import { carryFile } from '../../query/row-comparison.ts'
import { moveScript } from '../../query/moved-script.ts'
import { scriptAsSelect } from '../../query/script-as-select.ts'
import { closing, openQuery, type SessionVariables } from '../../query/lake.ts'
import { notesOfSql } from '../../query/question.ts'
import type { RunDeps } from '../../query/run.ts'
import { argueFromPlan } from '../lookahead/proof/prove.ts'
import {
  engineVersion,
  firstRow,
  keptRows,
  pinnedOptions,
  type PinnedQuery,
  readNote,
  runStamped,
  sameRows,
  type StampNote,
  writeStamped,
} from './stamped-rows.ts'
import type { Stressed } from './stress.ts'
import type { StressRating } from './stress-verdict.ts'
import { type StressRequest, tryStatistic, tryStatisticAgain } from './stress-stamp.ts'
import { refuseOthers } from '../../query/changed-files.ts'

/** A query to stamp, and where its result goes. */
interface StampInput {
  readonly root: string
  readonly catalogue: Catalogue
  /** The query's text as its author wrote it; or a stamped result, whose query, variables and version are taken. */
  readonly query: string | { readonly stamped: string }
  /** Absolute path of the result. */
  readonly out: string
  /** Session variables by name; for a stamped result none in addition to its own. */
  readonly variables: SessionVariables
  /** Request to stamp, instead of the query's rows, how far a statistic over them moves. */
  readonly stress?: StressRequest | undefined
}

/** Verdict on a stamped query: whether its plan proves that it does not look ahead, or the rating of its statistic. */
interface StampVerdict {
  readonly kind: 'lookahead' | 'stress'
  readonly verdict: 'proved' | 'not proved' | StressRating
}

/** Document of `stamp`: the query, its version and everything that its rows depend on. */
export interface Stamped extends StampNote {
  readonly verdict: StampVerdict
  readonly assumes: readonly AssumedRows[]
  /** Outcome that the rows describe, if a statistic was stamped. */
  readonly outcome: Stressed | null
  readonly id: string
  /** SHA-256 of the result file. */
  readonly digest: string
  readonly out: string
}

const tiesMoved = "every row is the same; those that the query's ORDER BY leaves equal stand in another order"
const folderMark = '{{folder}}'
/** A stamp's id is the beginning of its file's digest. */
const idLength = 16

/**
 * Runs a query over exactly the newest version, on one thread, and writes its rows with everything that is needed to
 * run it again. The views' text, the files that they name and the lake's own tables are kept for as long as the lake;
 * the note that says so makes no version.
 */
export async function stamp(input: StampInput, run: Omit<RunDeps, 'folder'>, deps: CommitDeps): Promise<Stamped> {
  await refuseMirror(input.root)
  const ledger = await Ledger.open(input.root)
  const id = `stamp-${Math.floor(deps.nowMicros()).toString(36)}-${deps.holder.pid}`
  const spool = await openSpool(input.root, id, deps)
  const temporary = `${input.out}.${deps.holder.pid}.tmp`
  const disk = deps.disk ?? realDisk
  try {
    const { root, query: text } = input
    // Only the note to come shows that these files are needed.
    await using _ = await pin(root, id, { ...deps.holder, since: deps.nowMicros() })
    const pinned = await (typeof text === 'string'
      ? pinNow(ledger, { ...input, query: text }, deps, spool)
      : readPinned(ledger, text.stamped))
    const { source } = pinned
    const { query, variables } = source
    await refuseOthers(ledger, undefined, source.version)
    using session = await openQuery(root, pinnedOptions(source))
    const sessionInput = { ...run, folder: root }
    const tried = input.stress && (await tryStatistic(ledger, source, input.stress, sessionInput))
    const stampedRows = await runStamped(session, tried?.rows ?? query, sessionInput)
    const single = scriptAsSelect(query)?.sql
    const assumes = await loadAssumptions(session, tried ? undefined : single, keptRows.own)
    const noted = tried ? [] : await notesOfSql(session, query, sessionInput, keptRows.own)
    const facts = { query, variables, engine: await engineVersion(session), program: deps.program }
    const note: StampNote = {
      ...pinned.note,
      ...stampedRows,
      ...facts,
      ...(tried && { stress: tried.again }),
      ...(assumes.length > 0 && { assumes }),
      ...(noted.length > 0 && { noted }),
    }
    // A script that amounts to one SELECT has a plan to ask; its rows are decided at `ts`.
    const argument = single && !tried ? await argueFromPlan(session, { sql: single, ts: 'ts', labels: [] }) : undefined
    const verdict: StampVerdict = tried
      ? { kind: 'stress', verdict: tried.outcome.verdict }
      : { kind: 'lookahead', verdict: argument?.proved === true ? 'proved' : 'not proved' }
    const verdictFacts = { verdict, assumes, outcome: tried?.outcome ?? null }
    await writeStamped(session, temporary, note)
    await disk.sync(temporary)
    const digest = await sha256File(temporary)
    const stampId = digest.slice(0, idLength)
    const stamped: Stamped = { ...note, ...verdictFacts, id: stampId, digest, out: input.out }
    await record(ledger, spool, stamped, pinned.kept, deps)
    await disk.move(temporary, input.out)
    await disk.syncFolder(dirname(input.out))
    return stamped
  } catch (error) {
    throw diskError(error, 'stamp')
  } finally {
    await disk.remove(temporary)
    await spool.close()
    ledger.close()
  }
}

/** Pinned query with the files that are kept for it. */
interface PinnedSource {
  readonly source: PinnedQuery
  /** Files that were copied for it, relative to the lake. */
  readonly kept: readonly string[]
  readonly note: Pick<StampNote, 'lake' | 'version' | 'script' | 'catalogue'>
}

/** Reads the files and views that an earlier stamp pinned. */
async function readPinned(ledger: Ledger, path: string): Promise<PinnedSource> {
  const { note, source } = await loadProvedStamp(ledger, path)
  refuseOutcome(note, path)
  const { files } = await readStamp(ledger.root, (await sha256File(path)).slice(0, idLength))
  const stampFiles = files.map((file) => file.path).filter((file) => file.startsWith(`${places.stamps}/`))
  const { lake, version, script, catalogue } = note
  return { source, kept: stampFiles, note: { lake, version, script, catalogue } }
}

/** Pins the current text of the views, and copies of the lake's own tables under names that never change. */
async function pinNow(
  ledger: Ledger,
  { root, catalogue, query, variables }: StampInput & { readonly query: string },
  deps: CommitDeps,
  spool: Spool,
): Promise<PinnedSource> {
  const { script: raw, manifest } = await tellViews(ledger, { catalogue, deps })
  const { version } = manifest
  const { lake } = ledger.head()
  if (lake === null || !(version > 0))
    throw usage(`lake ${root}`, { expected: 'a lake with at least one version', next: 'run pitlake fetch' })
  const disk = deps.disk ?? realDisk
  const keptFiles: string[] = []
  const keep = async (name: string, bring: (target: string) => Promise<void>): Promise<void> => {
    keptFiles.push(`${places.stamps}/${name}`)
    await bring(spool.file(name))
    const target = inLake(root, `${places.stamps}/${name}`)
    // The name identifies the content: an existing file is the same, unless a power cut has torn what a killed run
    // left.
    if ((await exists(target)) && (await sha256File(target)) === (await sha256File(spool.file(name))))
      return await disk.sync(target)
    await disk.sync(spool.file(name))
    await disk.move(spool.file(name), target)
  }
  await makeFolder(disk, inLake(root, places.stamps))
  for (const { path } of exportsOf(manifest))
    await keep(basename(path), async (target) => await copy(inLake(root, path), target))
  const text = moveScript(raw, root, folderMark).replaceAll(`${folderMark}/exports/`, `${folderMark}/${places.stamps}/`)
  const script = `${sha256(text).slice(0, 32)}.sql`
  await keep(script, async (target) => await disk.write(target, text))
  const digest = sha256(JSON.stringify(exportCatalogue(catalogue)))
  return {
    source: { root, version, script: raw, query, variables, anyVariable: false },
    kept: keptFiles,
    note: { lake, version, script: `${places.stamps}/${script}`, catalogue: digest },
  }
}

/** Records a stamped result. A result that is stamped again leaves the note as it is. */
async function record(
  ledger: Ledger,
  spool: Spool,
  { id, digest, out, query, ...note }: Stamped,
  keptFiles: readonly string[],
  deps: CommitDeps,
): Promise<void> {
  const { root } = ledger
  await using _lock = await lockCommit(root, { ...deps.holder, since: deps.nowMicros() }, deps)
  await ledger.catchUp()
  if (storedStamps(ledger).some((stored) => stored.id === id)) return
  const pinned = liveFiles(ledger, { version: note.version })
  if (pinned.some((file) => file.dropped_version !== null))
    throw new LakeError('unexpected', {
      subject: `version ${note.version}`,
      got: 'files that were vacuumed meanwhile',
      next: 'run the same command again',
    })
  const digests = keptFiles.map(async (path) => {
    const full = inLake(root, path)
    return { path, bytes: (await statOf(full))?.size ?? 0, sha256: await sha256File(full) }
  })
  const files = pinned.map(({ path, bytes, sha256: sum }) => ({ path, bytes, sha256: sum }))
  const again = observedAgain(ledger)
  const stampFile: StampFile = {
    schema_version: stampSchema,
    lake: note.lake,
    id,
    version: note.version,
    digest,
    query_digest: sha256(query),
    path: basename(out),
    at: Math.floor(deps.nowMicros()),
    program: deps.program,
    rules: storedRules(ledger, note.version)?.digest ?? null,
    detail: {
      script: note.script,
      result: note.result,
      rows: note.rows,
      variables: note.variables,
      verdict: { ...note.verdict },
      ...(note.assumes.length > 0 && { assumes: note.assumes.map((assumption) => ({ ...assumption })) }),
      ...(note.noted && { noted: note.noted.map((storedNote) => ({ ...storedNote })) }),
      ...(again.length > 0 && { observed_again: again.map((observed) => ({ ...observed })) }),
    },
    files: [...(await Promise.all(digests)), ...new Map(files.map((file) => [file.path, file])).values()],
  }
  await writeStamp(deps.disk ?? realDisk, root, spool.file('stamp.json'), stampFile)
  await ledger.catchUp()
}

/** A row that differs between a stamped result and its replay. */
export interface ReplayedRow {
  /** Counted from 1; 0 if the columns differ. */
  readonly row: number
  /** The column that differs first; null if one side has no such row. */
  readonly column: string | null
  /** The value of that column on both sides, or the whole row; null on the side that has no such row. */
  readonly stamped: string | null
  readonly replayed: string | null
}

/** Document of `replay`: the stamped result, and whether running it again gave the same rows. */
export interface Replayed extends StampNote {
  readonly same: boolean
  /** The first row that differs; null if there is none. */
  readonly difference: ReplayedRow | null
  /** Notes of changes since the stamp that should not matter. */
  readonly notes: readonly string[]
}

/** Runs a stamped result again over the version that it was made from and compares it bit for bit. */
export async function replay(
  root: string,
  path: string,
  run: Omit<RunDeps, 'folder'>,
  program: string,
): Promise<Replayed> {
  using ledger = await Ledger.openToRead(root)
  const { note, source } = await loadProvedStamp(ledger, path)
  const sessionInput = { ...run, folder: root }
  const { session: opened, again } = await unlessForgotten(ledger, note.version, path, async () => {
    const session = await openQuery(root, pinnedOptions(source))
    return await closing(session, async () => {
      const tried = note.stress && (await tryStatisticAgain(source, note.stress, sessionInput))
      return { session, again: await runStamped(session, tried ?? source.query, sessionInput) }
    })
  })
  using session = opened
  const notes = changesSince(note, await engineVersion(session), program)
  if (again.result === note.result) return { ...note, same: true, difference: null, notes }
  await carryFile(path, session, keptRows.brought)
  if (await sameRows(session)) return { ...note, same: true, difference: null, notes: [...notes, tiesMoved] }
  const first = await firstRow(session)
  const difference = first ? { row: first.row, column: first.column, stamped: first.from, replayed: first.to } : null
  return { ...note, same: false, difference, notes }
}

/** A stamped result whose digest the lake has recorded. */
export interface ProvedStamp {
  readonly note: StampNote
  /** Query of the stamp, over the views that made it. */
  readonly source: PinnedQuery
}

/** Loads the note of an unchanged stamped result, and its query over the views of its time. */
export async function loadProvedStamp(ledger: Ledger, path: string): Promise<ProvedStamp> {
  const note = await noteOf(path)
  await refuseOtherFile(ledger, note, path)
  const text = await readText(inLake(ledger.root, note.script)).catch((cause: unknown) => {
    requireFileError(cause, `reading ${note.script}`)
    throw lostScript(note.script, cause)
  })
  if (!note.script.includes(sha256(text).slice(0, 32))) throw lostScript(note.script, undefined)
  const { root } = ledger
  const { query, variables, version } = note
  const script = moveScript(text, folderMark, root)
  const filesGone = forgottenFile(ledger, version) !== undefined
  return { note, source: { root, version, script, query, variables, anyVariable: true, filesGone } }
}

const stampCommand = 'pitlake stamp QUERY.sql --out FILE.parquet makes one'

/** Reads the note of a stamped result; refuses any other file. */
export async function noteOf(path: string): Promise<StampNote> {
  const note = await readNote(path).catch(async (cause: unknown) => {
    requireFileError(cause, `reading ${path}`)
    if (await isParquet(path)) throw unsoundFile(path, 'a Parquet file', 'a damaged one', cause)
    throw usage(path, {
      expected: 'a result of pitlake stamp',
      got: 'a file that is not Parquet',
      next: stampCommand,
      cause,
    })
  })
  if (note !== undefined) return note
  throw usage(path, {
    expected: 'a result of pitlake stamp',
    got: 'a Parquet file without a stamp',
    next: stampCommand,
  })
}

/** Whether a file begins or ends as Parquet files do; a damaged one still does, unless it is damaged on both sides. */
async function isParquet(path: string): Promise<boolean> {
  const [head, tail] = await readEnds(path, parquetMark.length)
  return head === parquetMark || tail === parquetMark
}

const parquetMark = 'PAR1'

/** Refuses a file other than the one whose digest the lake has. */
async function refuseOtherFile(ledger: Ledger, note: StampNote, path: string): Promise<void> {
  const { lake } = ledger.head()
  if (lake !== note.lake)
    throw usage(path, {
      expected: `a result of lake ${lake}`,
      got: `one of lake ${note.lake}`,
      next: 'name its folder with --data',
    })
  const digest = await sha256File(path)
  const stampsOfVersion = storedStamps(ledger).filter((stored) => stored.version === note.version)
  if (stampsOfVersion.some((stored) => stored.digest === digest)) return
  throw unsoundFile(path, 'the bytes that were stamped', 'a file that was changed since, or was never stamped here')
}

/**
 * Finds the first file of a version that was dropped from the lake and no longer exists; undefined if there is none.
 */
function forgottenFile(ledger: Ledger, version: number): StoredFile | undefined {
  const dropped = liveFiles(ledger, { version }).filter((file) => file.dropped_version !== null)
  return dropped.find((file) => !isThere(inLake(ledger.root, file.path)))
}

/**
 * Runs work with a stamped result. If that fails and the lake works without a file of the result's version, it fails
 * for that reason: a result that does not read the file does not need it.
 */
export async function unlessForgotten<T>(
  ledger: Ledger,
  version: number,
  path: string,
  work: () => Promise<T>,
): Promise<T> {
  const forgotten = forgottenFile(ledger, version)
  try {
    return await work()
  } catch (error) {
    const isOfResult = error instanceof LakeError && !['unexpected', 'usage'].includes(error.kind)
    if (forgotten === undefined || isOfResult) throw error
    throw new LakeError('integrity', {
      subject: path,
      expected: `the files of version ${version}, of which it was made`,
      got: `none at ${forgotten.path}: the lake goes on without it since version ${forgotten.dropped_version}`,
      next: 'put it back from a copy of the lake, or run pitlake stamp again on what is there now',
      cause: error,
    })
  }
}

/**
 * Refuses a stamped result that reads a file which the lake goes on without; it is run again where one is gone at all.
 */
export async function refuseForgotten(ledger: Ledger, { note, source }: ProvedStamp, path: string): Promise<void> {
  if (!source.filesGone) return
  await unlessForgotten(ledger, note.version, path, async () => {
    using session = await openQuery(ledger.root, pinnedOptions(source))
    // Nobody cancels it, so it never waits.
    await runStamped(session, source.query, { folder: ledger.root, sleep: async () => undefined })
  })
}

function unsoundFile(path: string, expected: string, got: string, cause?: unknown): LakeError {
  const next = 'put it back from a copy, or run pitlake stamp again'
  return new LakeError('integrity', { subject: path, expected, got, next, cause })
}

/** Refuses a stamped outcome of a statistic where the rows of a query are expected. */
export function refuseOutcome({ stress }: StampNote, path: string): void {
  if (stress === undefined) return
  throw usage(path, { expected: 'a stamped result of a query', got: 'the outcome of pitlake stress' })
}

function lostScript(script: string, cause: unknown): LakeError {
  return new LakeError('integrity', {
    subject: script,
    expected: 'the text of the views that was stamped',
    got: cause === undefined ? 'another text' : 'no such file',
    next: 'run pitlake doctor',
    cause,
  })
}

/** Notes of changes since a result was stamped that should not matter. */
export function changesSince(note: StampNote, engine: string, program: string): string[] {
  const notes: string[] = []
  if (engine !== note.engine) notes.push(`stamped with DuckDB ${note.engine}, replayed with ${engine}`)
  if (program !== note.program) notes.push(`stamped by ${note.program}, replayed by ${program}`)
  return notes
}
