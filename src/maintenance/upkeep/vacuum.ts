import { commit, type CommitDeps } from '../../lake/ledger/commit.ts'
import { namesIn, realDisk, statOf } from '../../lake/store/disk.ts'
import { foldedBefore, foldJournal } from '../../lake/ledger/checkpoint-writer.ts'
import { readLogs } from '../../lake/ledger/run-facts.ts'
import type { Micros } from '../../base/time.ts'
import {
  archivedState,
  filesOnDisk,
  type StoredFile,
  storedStamps,
  storedVersions,
  liveFiles,
} from '../../lake/ledger/index-queries.ts'
import { archiveFile, inLake, places, versionedName } from '../../lake/store/layout.ts'
import { type JobDeps, runName, withLake } from '../../lake/ledger/job.ts'
import { Ledger } from '../../lake/ledger/ledger.ts'
import { pinnedSince, tryLock } from '../../lake/store/lock.ts'
import { listStamps, readStamp } from '../../lake/ledger/stamps.ts'
import { archivedTables, copySql, exportsFolder, isExport, writeLines } from '../../query/views/ledger-tables.ts'
import { waitForViews } from '../../query/views/build.ts'
import { namedByViews } from '../../query/views/manifest.ts'
import { vacuumable } from './merge-plan.ts'
import { providerOf } from '../../lake/ledger/provider.ts'
import { columnsOf, parquet } from '../../lake/store/parquet.ts'
import { archivable, type Archived, archived, isKept, toState } from '../../lake/ledger/archived-rows.ts'
import { type Draft, footerOf, type StagedFile, type Ticket, withoutPoints } from '../../lake/ledger/draft.ts'
import { prove } from './merge-files.ts'
import { type Rewriting, withRewriting } from './rewrite.ts'
import { quote } from '../../lake/store/engine.ts'
import { count, orNull, real, text } from '../../base/value-checks.ts'
import { rowOf } from '../../lake/ledger/index-rows.ts'

/** Entries are folded sooner than at the end of a run: only then can they go. */
const foldedEarly = 32

/** Input of a vacuum. */
interface VacuumInput {
  readonly root: string
  /** Seconds within which versions that were the newest keep their files. */
  readonly keepSeconds: number
  /** Age in seconds up to which requests, runs and their logs are kept. */
  readonly keepRequestsSeconds?: number
  /** Whether to remove anything; false: only reports what would be freed. */
  readonly really: boolean
}

/** Dependencies of a vacuum. */
interface VacuumDeps extends JobDeps {
  /** Brings the views up to the newest version, so that no view is opened over files that are about to go. */
  readonly buildViews: (ledger: Ledger) => Promise<unknown>
}

/** Removes the bytes that no kept version needs; what is live, young or stamped stays. */
export async function vacuum(input: VacuumInput, deps: VacuumDeps): Promise<VacuumSummary> {
  const { root, really, keepSeconds: keep_seconds } = input
  // A session may have opened the current views, whatever replaces them.
  const inPlace = await namedByViews(root)
  if (!really) {
    using ledger = await Ledger.openToRead(root)
    return await summaryOf(ledger, input, await goingOf(ledger, input, deps, inPlace))
  }
  return await withLake({ root, name: 'vacuum' }, deps, async ({ id, ledger, begin }) => {
    let removed = { files: 0, bytes: 0 }
    await begin({ keep_seconds }, () => removed)
    await archiveRows(ledger, deps, undefined, id)
    await foldJournal(ledger, deps, foldedEarly)
    if (ledger.head().version > 0) await deps.buildViews(ledger)
    const value = await clean(ledger, input, deps, id, inPlace)
    const { data, journal, exports } = value
    removed = { files: value.paths.length, bytes: data.bytes + journal.bytes + exports.bytes }
    return { value, stopped_by: null, error: null }
  })
}

/** Whether views may name a file, relative to the lake. */
type IsNamed = (path: string) => boolean

/** Files that a vacuum may take away. */
interface VacuumPlan {
  /** Data files that no kept version needs. */
  readonly data: readonly StoredFile[]
  /** Superseded files that stay because a stamped result needs them. */
  readonly stamped: readonly StoredFile[]
  /** Folded files of the journal, relative to the lake. */
  readonly journal: readonly string[]
  /** Exports that no views name, relative to the lake. */
  readonly exports: readonly string[]
  /** Files of old requests and runs; they leave the view. */
  readonly expired: readonly StoredFile[]
  /** Logs of old runs, relative to the lake. */
  readonly logs: readonly string[]
}

/** Number and bytes of files. */
export interface FilesSize {
  readonly files: number
  readonly bytes: number
}

/** Result of a vacuum, or of a dry run. */
export interface VacuumSummary {
  /** Newest version of the lake. */
  readonly version: number
  /** Whether nothing was removed. */
  readonly dry_run: boolean
  readonly data: FilesSize
  readonly journal: FilesSize
  readonly exports: FilesSize
  /** Old requests and runs: their files leave the view now and go later, like any superseded file. */
  readonly requests: FilesSize
  /** Superseded files that stay because a stamped result needs them. */
  readonly stamped: FilesSize
  /** Paths of the files that go, relative to the lake. */
  readonly paths: readonly string[]
}

const year = 400 * 86_400

async function goingOf(ledger: Ledger, input: VacuumInput, deps: VacuumDeps, inPlace: IsNamed): Promise<VacuumPlan> {
  // If the clock was set back, the newest commit is later than it.
  const now = Math.max(deps.nowMicros(), ledger.head().committed_at)
  const pinned = await pinnedSince(input.root)
  const before = Math.min(now - input.keepSeconds * 1_000_000, pinned ?? Number.POSITIVE_INFINITY)
  // A note that cannot be read may pin anything.
  for (const id of await listStamps(input.root)) await readStamp(input.root, id)
  const ends = new Map(storedVersions(ledger).map(({ version, committed_at }) => [version, committed_at]))
  const stamps = storedStamps(ledger).map((stamp) => stamp.version)
  const isOld = (version: number): boolean => (ends.get(version) ?? Number.POSITIVE_INFINITY) <= before
  const { going, stamped } = vacuumable(filesOnDisk(ledger), { stamps, isOld })
  const isNamedByViews = await namedByViews(ledger.root)
  const isNamed: IsNamed = (path) => inPlace(path) || isNamedByViews(path)
  // Whoever copies the lake reads the journal from where an earlier copy ended.
  const journal = pinned === undefined ? await foldedBefore(ledger, before) : []
  const oldest = now - (input.keepRequestsSeconds ?? year) * 1_000_000
  const logs = (await readLogs(ledger.root)).filter(({ began }) => began < oldest).map(({ path }) => path)
  return {
    data: going.filter(({ path }) => !isNamed(path)),
    stamped,
    journal,
    exports: await supersededExports(ledger.root, isNamed, isOld),
    expired: expiredFiles(ledger, oldest),
    logs,
  }
}

/** Lists files whose every request or run is older than an instant. */
function expiredFiles(ledger: Ledger, oldest: Micros): StoredFile[] {
  const files = [...liveFiles(ledger, { table: 'requests' }), ...liveFiles(ledger, { table: 'runs' })]
  return files.filter(({ max_t }) => max_t !== null && (max_t + 1) * 1_000_000 <= oldest)
}

/** Exports that no views name and that a later version overtook long ago. */
async function supersededExports(root: string, isNamed: IsNamed, isOld: (version: number) => boolean) {
  const names = (await namesIn(inLake(root, exportsFolder))).filter(isExport)
  return names
    .map((name) => `${exportsFolder}/${name}`)
    .filter((path) => isOld(1 + Number(/-(\d{10,})-[0-9a-f]+\.parquet$/.exec(path)?.[1])) && !isNamed(path))
}

/** Name of the lock of a vacuum that removes files; another one can work at the same time. */
export const vacuumLock = 'vacuum'

async function clean(
  ledger: Ledger,
  input: VacuumInput,
  deps: VacuumDeps,
  run: string,
  inPlace: IsNamed,
): Promise<VacuumSummary> {
  const going: VacuumPlan[] = []
  const holder = { ...deps.holder, since: deps.nowMicros() }
  await using _lock = await tryLock(ledger.root, vacuumLock, holder)
  await commit(
    ledger,
    async () => {
      const now = await goingOf(ledger, input, deps, inPlace)
      going.push(now)
      if (now.data.length + now.expired.length === 0) return null
      return { job: 'vacuum', run, provider: providerOf(ledger), drop: pathsOf(now.data), remove: pathsOf(now.expired) }
    },
    deps,
  )
  const [firstGoing] = going
  if (!firstGoing) throw new RangeError('a commit without its draft')
  const summary = await summaryOf(ledger, input, firstGoing)
  if (firstGoing.expired.length > 0) await deps.buildViews(ledger)
  // Only now: a process that dies in between leaves files that no entry names, and the next writing command sweeps
  // them.
  const disk = deps.disk ?? realDisk
  // The checkpoint that replaces the journal's entries may come from a killed run: its name must outlive a power cut.
  await disk.syncFolder(inLake(ledger.root, places.journal))
  const exports = new Set(firstGoing.exports)
  for (const path of summary.paths) if (!exports.has(path)) await disk.remove(inLake(ledger.root, path))
  await removeExports(ledger.root, firstGoing.exports, deps)
  ledger.exec('PRAGMA wal_checkpoint(TRUNCATE)')
  return summary
}

/** Removes exports, unless views made meanwhile name them again. */
async function removeExports(root: string, paths: readonly string[], deps: VacuumDeps): Promise<void> {
  if (paths.length === 0) return
  await using _lock = await waitForViews(root, deps)
  const isNamed = await namedByViews(root)
  for (const path of paths) if (!isNamed(path)) await (deps.disk ?? realDisk).remove(inLake(root, path))
}

async function summaryOf(ledger: Ledger, input: VacuumInput, going: VacuumPlan): Promise<VacuumSummary> {
  const data = pathsOf(going.data)
  const { journal, exports, logs } = going
  return {
    version: ledger.head().version,
    dry_run: !input.really,
    data: await sizes(ledger.root, data),
    journal: await sizes(ledger.root, journal),
    exports: await sizes(ledger.root, exports),
    requests: await sizes(ledger.root, [...pathsOf(going.expired), ...logs]),
    stamped: await sizes(ledger.root, pathsOf(going.stamped)),
    paths: [...data, ...journal, ...exports, ...logs],
  }
}

/** Lists the paths of files, each once under however many labels. */
const pathsOf = (files: readonly StoredFile[]): string[] => [...new Set(files.map(({ path }) => path))]

async function sizes(root: string, paths: readonly string[]): Promise<FilesSize> {
  const all = await Promise.all(paths.map(async (path) => (await statOf(inLake(root, path)))?.size ?? 0))
  return { files: paths.length, bytes: all.reduce((sum, bytes) => sum + bytes, 0) }
}

/** Number of rows that are worth a separate version. */
const worthwhile = 500
/** Microseconds for which rows stay in the index: two days. */
const atHand: Micros = 2 * 86_400_000_000

/** Instant that decides into which file a row goes: one a month, so that old months can go; null if none may. */
const instants: Readonly<Record<Archived, string | null>> = {
  requests: 'asked_at',
  coverage: null,
  runs: 'started_at',
  versions: null,
}

/**
 * Puts old rows of the ledger into files of the lake, where they are merged like points: so the ledger, its checkpoints
 * and the exports for the views do not grow with every request that was ever made.
 */
export async function archiveRows(
  ledger: Ledger,
  deps: CommitDeps,
  least: number = worthwhile,
  run: string = runName(deps, 'archive'),
): Promise<void> {
  const due = deps.nowMicros() - atHand
  const waiting = archived.map((table) => countOf(ledger, table, due)).reduce((sum, rows) => sum + rows, 0)
  if (waiting < least) return
  await withRewriting(ledger, { ...deps, threads: 1 }, run, async (rewriting) => {
    await commit(
      ledger,
      async (ticket) => {
        // If the clock was set back, rows that are in files already do not go again.
        const before = Math.max(due, archivedState(ledger).before)
        return await draftOf({ ...rewriting, ticket, before })
      },
      deps,
    )
  })
}

/** A run that puts rows of the ledger from before an instant into files. */
interface ArchiveRun extends Pick<Rewriting, 'ledger' | 'spool' | 'engine' | 'run'> {
  readonly ticket: Ticket
  readonly before: Micros
}

/** Builds the condition for rows to archive: those that are in files already are not archived again. */
function conditionOf(ledger: Ledger, table: Archived, before: Micros): string {
  const rows = archivable(table, before)
  return isKept(table) ? `${rows} AND NOT (${archivable(table, archivedState(ledger).before)})` : rows
}

function countOf(ledger: Ledger, table: Archived, before: Micros): number {
  const row = ledger.statement(`SELECT count(*) AS n FROM ${table} WHERE ${conditionOf(ledger, table, before)}`).get()
  return Number(row?.['n'] ?? 0)
}

async function draftOf(archiving: ArchiveRun): Promise<Draft> {
  const { ledger, run, before } = archiving
  const archivedNow = archivedState(ledger)
  const add: StagedFile[] = []
  for (const table of archived) add.push(...(await filesOf(archiving, table)))
  const cost = ledger
    .statement(
      `SELECT count(*) AS n, coalesce(sum(credits), 0) AS c FROM requests WHERE ${archivable('requests', before)}`,
    )
    .get()
  const state = {
    before,
    requests: archivedNow.requests + Number(cost?.['n'] ?? 0),
    credits: archivedNow.credits + Number(cost?.['c'] ?? 0),
  }
  return { job: 'archive', run, provider: providerOf(ledger), add, state: toState(state) }
}

const partOf = rowOf({ label: text, rows: count, min_t: orNull(real), max_t: orNull(real) })

async function filesOf(archiving: ArchiveRun, table: Archived): Promise<StagedFile[]> {
  const { ledger, before } = archiving
  const condition = conditionOf(ledger, table, before)
  const instant = instants[table]
  const labelOf = instant === null ? `''` : `strftime('%Y-%m', ${instant} / 1000000, 'unixepoch')`
  const parts = ledger.statement(
    `SELECT ${labelOf} AS label, count(*) AS rows, min(${instant}) / 1000000 AS min_t,
       max(${instant}) / 1000000 AS max_t
     FROM ${table} WHERE ${condition} GROUP BY 1 ORDER BY 1`,
  )
  const files: StagedFile[] = []
  for (const part of parts.all().map(partOf)) {
    const ofLabel = `${condition} AND ${labelOf} = ${quote(part.label)}`
    files.push(await fileOf(archiving, { table, condition: ofLabel, ...part }))
  }
  return files
}

/** Rows of the ledger for one archive file. Derived from the check that reads them. */
interface Part extends ReturnType<typeof partOf> {
  readonly table: Archived
  readonly condition: string
}

async function fileOf({ ledger, ticket, spool, engine }: ArchiveRun, { table, label, condition, ...facts }: Part) {
  const name = versionedName(ticket.version, label === '' ? 'all' : label)
  const { columns, lines } = archivedTables[table]
  const text = spool.file(`${table}-${name}.jsonl`)
  const temporary = `${table}-${name}.parquet`
  const written = await writeLines(text, lines(ledger, condition))
  await engine.run(copySql(written, spool.file(temporary), columns, footerOf(ticket)))
  const source = parquet([spool.file(temporary)])
  const proof = await prove(engine, source, await columnsOf(engine, source), table)
  if (proof.rows !== facts.rows) throw new RangeError(`${facts.rows} rows of ${table} became ${proof.rows}`)
  const place = { temporary: spool.path(temporary), path: archiveFile(table, name), table, label }
  return { ...place, ...withoutPoints, ...facts, digest: proof.digest, meta: {} }
}
